"""Limits of the door: token buckets per caller, so that guessing and flooding get slow."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

CALLERS = 10_000


class Bucket:
    """Up to `burst` at once, `per_second` on average, per caller; oldest callers are forgotten."""

    def __init__(
        self, burst: float, per_second: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._burst, self._rate, self._clock = burst, per_second, clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def level(self, caller: str) -> float:
        left, at = self._levels.get(caller, (self._burst, self._clock()))
        return min(self._burst, left + (self._clock() - at) * self._rate)

    def empty(self, caller: str) -> bool:
        return self.level(caller) < 1

    def take(self, caller: str) -> bool:
        """Take one; False when there is none left."""
        left = self.level(caller)
        if left < 1:
            return False
        self._levels[caller] = (left - 1, self._clock())
        self._levels.move_to_end(caller)
        if len(self._levels) > CALLERS:
            self._levels.popitem(last=False)
        return True
