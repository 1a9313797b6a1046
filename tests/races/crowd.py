"""Threads that start at one moment, and guards that a test takes away to see a race happen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from django.db import connection

from gpucloud.engine import leases

SECONDS = 30


def together(*works: Callable[[], Any]) -> list[Any]:
    """Run all of them at once, each on a connection of its own; what each returned or raised."""
    gate = threading.Barrier(len(works))
    results: list[Any] = [None] * len(works)

    def run(index: int, work: Callable[[], Any]) -> None:
        try:
            gate.wait(SECONDS)
            results[index] = work()
        except Exception as error:
            results[index] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(index, work)) for index, work in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return results


class Meeting:
    """A place in the code where `count` threads meet, unless a lock keeps them apart."""

    def __init__(self, count: int, seconds: float = 2.0) -> None:
        self._barrier, self._seconds = threading.Barrier(count), seconds

    def wait(self) -> None:
        try:
            self._barrier.wait(self._seconds)
        except threading.BrokenBarrierError:
            return


def raised(results: list[Any]) -> list[Exception]:
    return [one for one in results if isinstance(one, Exception)]


class Unlocked:
    """A model whose row is not locked: its first UPDATE, which is only the lock, does nothing."""

    objects = SimpleNamespace(filter=lambda **_: SimpleNamespace(update=lambda **_: 1))


@contextmanager
def no_leases(resources: Any, seconds: float = 0) -> Iterator[Any]:
    """What leases.holding would be if it gave everything to everybody."""
    yield SimpleNamespace(confirm=lambda: None)


def short_leases(monkeypatch: Any, lease: float = 1.0, budget: float = 0.5) -> None:
    """Leases, budget and request time-out that a test can wait for."""
    real = leases.holding
    monkeypatch.setattr(leases, "holding", lambda resources: real(resources, lease))
    monkeypatch.setattr(leases, "BUDGET_SECONDS", budget)
    monkeypatch.setattr(leases, "REQUEST_SECONDS", 0.2)
