"""What the agent needs of the machine it runs on; one implementation per kind of hardware."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Protocol

OnProgress = Callable[[float], None]


@dataclass(frozen=True)
class Drive:
    """One drive as the ramdisk sees it."""

    name: str
    serial: str
    model: str
    capacity_bytes: int
    protocol: str

    def facts(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Machine:
    """Who this machine is."""

    system_uuid: str
    serial: str
    macs: list[str]
    gpus: list[dict[str, Any]] = field(default_factory=list)


class VerbFailed(Exception):
    """A wipe verb that the drive refused or broke off; `raw` is its own answer."""

    def __init__(self, raw: str) -> None:
        super().__init__(raw)
        self.raw = raw


class Hardware(Protocol):
    """The machine under the agent."""

    def machine(self) -> Machine: ...

    def drives(self) -> list[Drive]: ...

    def supports(self, drive: Drive, method: str) -> bool: ...

    def erase(self, drive: Drive, method: str, on_progress: OnProgress) -> str:
        """Run one wipe verb to its end and return the drive's raw status; VerbFailed if it failed.

        Calls on_progress with 0..1 now and then; whatever that raises ends the verb.
        """

    def readable_bytes(self, drive: Drive) -> int: ...

    def read(self, drive: Drive, offset: int, length: int) -> bytes: ...

    def power_off(self) -> None: ...


def open_hardware(kind: str) -> Hardware:
    """The hardware that `--hardware` names."""
    name, _, where = kind.partition(":")
    if name == "fake" and where:
        from gpucloud_agent.fake import FakeHardware

        return FakeHardware(where)
    raise ValueError(f"unknown hardware {kind!r}: known is fake:<folder>")
