"""The machine itself: power, POST, boot order. What then runs on it has modules of its own."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from enum import Enum, StrEnum
from typing import Any

from gpucloud.lab.acts import now
from gpucloud.lab.hardware.server import Server
from gpucloud.lab.hardware.world import World

log = logging.getLogger(__name__)

POST_SECONDS = 45.0
# Wall time. After an install the firmware trains memory and rewrites its boot entries; whoever
# wants to stop the machine before its new OS begins has this long, whatever LAB_SPEED is. Tests
# that kill whoever would stop it in time give it more, as real firmware does.
POST_AFTER_INSTALL_SECONDS = max(5.0, float(os.environ.get("LAB_POST_SECONDS") or 5))
POWER_SECONDS = 2.0
SHUTDOWN_SECONDS = 10.0
BOOT_ORDER = ("Hdd", "Pxe", "Cd")


class Phase(StrEnum):
    OFF = "off"
    POST = "post"
    LOADING = "loading"
    RAMDISK = "ramdisk"
    AGENT = "agent"
    OS = "os"
    HUNG = "hung"
    STUCK = "no bootable device"


# Phases in which an operating system listens to the power button.
LISTENING = (Phase.RAMDISK, Phase.AGENT, Phase.OS)


class Outcome(Enum):
    """How an attempt to boot from a device ended."""

    NOT_BOOTABLE = "not bootable"
    POWER_OFF = "power off"
    STOPPED = "stopped"


class Machine:
    """One machine. Everything it does happens in one task, which power-off cancels."""

    def __init__(self, server: Server, world: World) -> None:
        self.server = server
        self.world = world
        self.actor = f"machine:{server.name}"
        self.phase = Phase.OFF
        self.device: str | None = None
        self.detail = ""
        self.progress = "None"
        self.progress_at = now()
        self.on_change: Callable[[str, str], None] = lambda kind, sentence: None
        self._life: asyncio.Task[None] | None = None
        self._presses: set[asyncio.Task[None]] = set()
        self._lock = asyncio.Lock()

    @property
    def is_on(self) -> bool:
        return self.server.memory.power == "On"

    def start(self) -> None:
        """Mains return: a machine that was on when the lab died begins again at POST."""
        if self.is_on:
            self._begin()

    async def stop(self) -> None:
        """The lab ends; the machine stays as it is in its own memory."""
        for task in [*self._presses]:
            task.cancel()
        await self._end()

    def press(self, kind: str, actor: str) -> None:
        """Ask for On, ForceOff, GracefulShutdown or ForceRestart; it takes effect a moment later.

        The asker has no answer yet when this returns, as on a real BMC.
        """
        task = asyncio.get_running_loop().create_task(self._pressed(kind, actor))
        self._presses.add(task)
        task.add_done_callback(self._presses.discard)

    async def _pressed(self, kind: str, actor: str) -> None:
        await self.world.wait(POWER_SECONDS)
        if kind == "GracefulShutdown":
            life = self._life
            if not self.is_on or self.phase not in LISTENING:
                return
            await self.world.wait(SHUTDOWN_SECONDS)
            if self._life is not life:
                return
        async with self._lock:
            if kind != "On" and self.is_on:
                await self._end()
                self._power("Off", actor)
            if kind in ("On", "ForceRestart") and not self.is_on:
                self._power("On", actor)
                self._begin()

    def _power(self, state: str, actor: str) -> None:
        before, self.server.memory.power = self.server.memory.power, state
        self.server.log(f"System power is {state.lower()}", sensor="Power")
        self.server.save()
        self.world.acts.write(actor, self.server.name, "power", before.lower(), state.lower())
        if state == "Off":
            self.device = None
            self.detail = ""
            self._progress("None")
            self.enter(Phase.OFF)
        self.on_change("power", f"The system was powered {state.lower()}.")

    def _begin(self) -> None:
        self._life = asyncio.get_running_loop().create_task(self._live())

    async def _end(self) -> None:
        life, self._life = self._life, None
        if life is None:
            return
        life.cancel()
        await asyncio.gather(life, return_exceptions=True)

    async def _live(self) -> None:
        try:
            await self._post()
            outcome = await self._boot()
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("%s: what ran on the machine crashed", self.server.name)
            self.enter(Phase.HUNG, "crashed; the lab's log says why")
            return
        if outcome is Outcome.POWER_OFF:
            self._life = None
            self._power("Off", self.actor)

    async def _post(self) -> None:
        memory = self.server.memory
        self.device = None
        self._progress("None")
        self.enter(Phase.POST)
        memory.secure_boot_current = memory.secure_boot
        shortest = POST_AFTER_INSTALL_SECONDS if memory.installed else 0.0
        await self.world.wait(POST_SECONDS, at_least=shortest)
        memory.installed = False
        self._progress("SystemHardwareInitializationComplete")
        self.server.save()

    async def _boot(self) -> Outcome:
        # Late imports: these modules act on a Machine and name its type.
        from gpucloud.lab.hardware.agent import boot_media
        from gpucloud.lab.hardware.ramdisk import boot_network
        from gpucloud.lab.hardware.tenant import boot_disk

        ways = {"Hdd": boot_disk, "Pxe": boot_network, "Cd": boot_media}
        for device in self._devices():
            outcome = await ways[device](self)
            if outcome is not Outcome.NOT_BOOTABLE:
                return outcome
        self.device = None
        self.enter(Phase.STUCK)
        return Outcome.STOPPED

    def _devices(self) -> list[str]:
        """What to try, in order; an override for one boot is used up here."""
        memory = self.server.memory
        if self.server.faults.get("ignore_boot"):
            return ["Hdd"]
        override = memory.boot_target if memory.boot_enabled != "Disabled" else "None"
        if memory.boot_enabled == "Once":
            memory.boot_enabled, memory.boot_target = "Disabled", "None"
            self.server.save()
        first = [override] if override in BOOT_ORDER else []
        return first + [device for device in BOOT_ORDER if device not in first]

    # For what runs on the machine.

    def loads(self, device: str, detail: str) -> None:
        """The firmware handed over: an OS or ramdisk begins to load from this device."""
        self.device = device
        self.act("boot", None, device)
        self._progress("OSBootStarted")
        self.enter(Phase.LOADING, detail)

    def runs(self, phase: Phase, detail: str = "") -> None:
        self._progress("OSRunning")
        self.enter(phase, detail)

    def enter(self, phase: Phase, detail: str = "") -> None:
        before, self.phase, self.detail = self.phase, phase, detail
        if phase is not before:
            self.act("phase", before.value, phase.value)

    def act(self, verb: str, before: Any = None, after: Any = None, part: str = "") -> None:
        name = f"{self.server.name}/{part}" if part else self.server.name
        self.world.acts.write(self.actor, name, verb, before, after)

    def note(self, sentence: str) -> None:
        """Leave a warning in the event log that the BMC serves."""
        self.server.log(sentence, "Warning", "Boot")
        self.server.save()

    def has_installed(self) -> None:
        self.server.memory.installed = True
        self.server.save()

    def _progress(self, state: str) -> None:
        if state == self.progress:
            return
        self.progress, self.progress_at = state, now()
        self.on_change("boot", f"Boot progress is {state}.")
