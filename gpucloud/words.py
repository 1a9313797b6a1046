"""Words of a search: how many are looked for, and the one condition that asks for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Final

from django.db.models import Q

# Each word costs the database a look at every row: nobody may send thousands.
MOST: Final = 12


def hits(words: Iterable[str], paths: Sequence[str]) -> Q:
    """Rows in which every word is somewhere; to be given to one `filter()`.

    One filter joins a related table once. A filter per word would join it again for each, and a
    search of a few words over many ports would never end.
    """
    return reduce(
        and_,
        [reduce(or_, [Q(**{f"{path}__icontains": word}) for path in paths]) for word in words],
        Q(),
    )
