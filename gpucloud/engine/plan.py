"""The Plan protocol: what the engine needs of an owner of steps (an operation, a cluster) to drive
it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings

from gpucloud.drivers import DriverError, Progress
from gpucloud.models import Step


class Plan(Protocol):
    """Loads an owner, names its leases, runs one step once, and is told how steps and the whole
    ended.

    `run` may be called any number of times for one step and does one thing per call. The `on_…`
    hooks are called in
    the transaction that records the step. A driver is never called inside a transaction.
    """

    kind: str

    def load(self, uid: UUID) -> Any | None:
        """The owner, fresh; None when it is gone or not to be driven now."""

    def leases(self, owner: Any, step: Step) -> list[str]: ...

    def lock(self, owner: Any) -> None:
        """Lock the owner's own row: first in every transaction that changes its steps.

        Services lock it first too; in any other order the two wait for each other.
        """

    def run(self, owner: Any, step: Step) -> Progress: ...

    def on_started(self, owner: Any, step: Step) -> None: ...

    def on_done(self, owner: Any, step: Step, progress: Progress) -> None: ...

    def on_finished(self, owner: Any) -> None:
        """The last step is done."""

    def on_failed(self, owner: Any, step: Step, error: DriverError) -> None: ...

    def halt(self, owner: Any, step: Step) -> None:
        """The step is about to fail by its deadline: call off what the outside may still be doing.

        Called once, outside of a transaction, within a budget; it may raise what drivers raise.
        """

    def on_alarm(self, owner: Any, step: Step) -> None:
        """The step is past a deadline whose `then` is alarm."""

    def on_looked(self, owner: Any, step: Step) -> None:
        """The step was looked at and goes on; tell live pages."""


@cache
def plan_of(kind: str) -> Plan:
    """The plan that settings.PLANS names for a kind of owner."""
    module, _, name = settings.PLANS[kind].rpartition(".")
    found: Plan = getattr(import_module(module), name)()
    return found
