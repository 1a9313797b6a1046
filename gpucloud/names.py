"""Names of objects that have an address of their own: their characters, and words already taken."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import ValidationError

from gpucloud.models import name_validator

# Pages and verbs that stand where a name would: an object called so could never be reached.
ADDRESSES: Final = ("new", "register", "matches", "match", "test-connection")
# Resolves to the reader's own machine wherever a server is known by its name.
NOBODY: Final = ("localhost",)


def check(name: str) -> None:
    """Raise ValidationError with a sentence unless an object may be called this."""
    name_validator(name)
    if name in ADDRESSES:
        raise ValidationError(f"{name} is an address of its own; choose another name.")
    if name in NOBODY:
        raise ValidationError(f"{name} means every machine itself; choose another name.")
