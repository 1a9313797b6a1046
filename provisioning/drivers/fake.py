"""A provider in memory over any BMC driver, with looks and faults, without an engine behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gpucloud.drivers import Config, DriverError, Progress, setting
from provisioning.drivers import Goal, NodeSpec, Observed, RemoveGoal, ServerRef, StockItem
from provisioning.drivers.metal3 import Metal3
from tenants.drivers.fake import boot


@dataclass(frozen=True)
class FakeProviderConfig(Config):
    """Instances of the same name share one engine, as two connections to one would."""

    name: str = setting("fake", label="Name of the engine in memory")
    looks: int = setting(1, label="Looks until a change is done")


@dataclass
class FakeHost:
    """One server as the engine sees it; tests read it and may change it."""

    labels: dict[str, str] = field(default_factory=dict)
    state: str = "available"
    claimed_by: str = ""
    image: str = ""
    user_data: str = ""
    dhcp: dict[str, str] = field(default_factory=dict)
    waiting: tuple[str, int] = ("", 0)


@dataclass
class FakeEngine:
    """All hosts of one engine. `faults` maps a goal or `wipe` to the reason code it fails with."""

    hosts: dict[str, FakeHost] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def host(self, engine_id: str) -> FakeHost:
        return self.hosts.setdefault(engine_id, FakeHost())


class FakeProvider:
    """ProviderDriver over a FakeEngine; as Metal3 it leaves the power on after an install."""

    kind: ClassVar[str] = "fake"
    label: ClassVar[str] = "Fake provider (in memory)"
    Config: ClassVar[type] = FakeProviderConfig
    physical: ClassVar[bool] = True
    wipe_class: ClassVar[str] = "verified"
    steps: ClassVar[dict[str, tuple[str, ...]]] = Metal3.steps
    worlds: ClassVar[dict[str, FakeEngine]] = {}

    def __init__(self, config: FakeProviderConfig) -> None:
        self.config = config
        self.engine = self.worlds.setdefault(config.name, FakeEngine())

    def check(self) -> list[str]:
        if "check" in self.engine.faults:
            return ["The fake engine does not answer. Take the fault away."]
        return []

    def stock(self, selector: dict[str, str]) -> list[StockItem]:
        return [
            StockItem(engine_id, host.labels, host.state, *_refused(engine_id, host))
            for engine_id, host in sorted(self.engine.hosts.items())
            if selector.items() <= host.labels.items()
        ]

    def observe(self, ref: ServerRef) -> Observed:
        host = self.engine.hosts.get(_key(ref))
        if host is None:
            return Observed(exists=False)
        return Observed(exists=True, state=host.state, claimed_by=host.claimed_by)

    def ensure(self, spec: NodeSpec, goal: Goal) -> Progress:
        host = self._host(spec, goal)
        if goal == "prepared":
            assert spec.image is not None
            if not host.claimed_by and host.state != "available":
                raise _busy(spec, host)
            host.claimed_by, host.image = spec.claim_uid, spec.image.url
            host.user_data, host.dhcp = spec.user_data, dict(spec.dhcp)
            return self._after_looks(host, goal, f"{spec.server.name} is claimed.")
        if host.claimed_by != spec.claim_uid:
            raise _busy(spec, host)
        if goal == "installed" and host.state != "provisioned":
            host.state = "provisioning"
            self._power(spec, "on")
            progress = self._after_looks(host, goal, f"The image is on {spec.server.name}.")
            host.state = "provisioned" if progress.done else host.state
            return progress
        self._power(spec, "on")
        if goal == "started":
            if _power_of(spec) != "on":
                return Progress(False, f"{spec.server.name} is powered on.", wait=0.5)
            # What the tenant's system would do by itself.
            boot(host.user_data, spec.server.system_uuid)
        return Progress(True, f"{spec.server.name} is {goal}.", spec.server.engine_id)

    def remove(self, spec: NodeSpec, goal: RemoveGoal) -> Progress:
        host = self._host(spec, goal)
        if host.claimed_by not in ("", spec.claim_uid):
            if goal == "released" and not spec.media:
                return Progress(True, f"{spec.server.name} carries nothing of this claim.")
            raise _busy(spec, host)
        self._power(spec, "off")
        if goal == "stopped":
            seen = _power_of(spec)
            return Progress(seen == "off", f"{spec.server.name} reads {seen}.", wait=0.5)
        what = "deprovisioned" if spec.media else "freed"
        host.image = spec.media.url if spec.media else ""
        host.user_data, host.state = "", "available"
        host.claimed_by = spec.claim_uid if spec.media else ""
        return self._after_looks(host, what, f"{spec.server.name} carries nothing of the tenant.")

    def wipe(self, spec: NodeSpec) -> Progress:
        host = self._host(spec, "wipe")
        if host.claimed_by != spec.claim_uid:
            raise _busy(spec, host)
        assert spec.media is not None
        host.image = spec.media.url
        self._power(spec, "on")
        return self._after_looks(host, spec.media.url, f"The agent boots on {spec.server.name}.")

    def _host(self, spec: NodeSpec, doing: str) -> FakeHost:
        """The host, unless a fault is set for what is being done."""
        if code := self.engine.faults.get(doing):
            raise DriverError(
                f"The fake engine fails {doing} of {spec.server.name}.",
                code,
                permanent=True,
                hint="Take the fault away, then retry.",
            )
        return self.engine.host(_key(spec.server))

    def _power(self, spec: NodeSpec, power: str) -> None:
        if spec.bmc is not None and spec.bmc.power().power != power:
            spec.bmc.set_power("on" if power == "on" else "off")

    def _after_looks(self, host: FakeHost, goal: str, detail: str) -> Progress:
        """Done after the configured number of looks, as engines do not answer at once."""
        before, looks = host.waiting
        looks = looks + 1 if before == goal else 1
        host.waiting = (goal, looks)
        done = looks > self.config.looks
        return Progress(done, detail if done else f"Waiting: {detail}", "fake", wait=0.1)


def _key(ref: ServerRef) -> str:
    return ref.engine_id or ref.name


def _power_of(spec: NodeSpec) -> str:
    return spec.bmc.power().power if spec.bmc else "unknown"


def _refused(engine_id: str, host: FakeHost) -> tuple[str, str]:
    if host.claimed_by or host.state != "available":
        return f"{engine_id} is {host.state}.", "HOST_BUSY"
    return "", ""


def _busy(spec: NodeSpec, host: FakeHost) -> DriverError:
    return DriverError(
        f"{spec.server.name} is {host.state} and used by {host.claimed_by or 'nobody'}.",
        code="HOST_BUSY",
        permanent=True,
        hint="Pick another server.",
    )
