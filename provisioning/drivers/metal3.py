"""Servers through Metal3: image, data and wiping by patches of a few keys of the BareMetalHost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gpucloud.drivers import Config, DriverError, Progress, setting
from inventory.drivers.bmh import HOLD, HOLD_VALUE, Host, Hosts, refuse_stopped
from inventory.drivers.kube import Kube
from provisioning.drivers import Goal, NodeSpec, Observed, RemoveGoal, ServerRef, StockItem
from provisioning.drivers.metal3_claim import (
    CLEAR,
    busy,
    change_of,
    consumer,
    consumer_ref,
    drop_secrets,
    host_name,
    is_ours,
    iso,
    wish,
    write_secrets,
)
from provisioning.drivers.metal3_errors import raised
from provisioning.drivers.metal3_reading import had_begun, reading, told

SOON = 0.5
# A second key beside the hold: the tenant's system had begun to boot. It holds the server off as
# well, and it is the only place where a driver without memory finds that again.
BOOTED = f"{HOLD}-booted"
# Changing an annotation ends the operator's backoff: once per try of a step.
RETRY = "gpucloud.dev/retry"


@dataclass(frozen=True)
class Metal3Config(Config):
    kubeconfig: str = setting(
        label="Kubeconfig", help="Of the cluster with the BareMetalHosts.", secret=True
    )
    namespace: str = setting("default", label="Namespace of the BareMetalHosts")
    gitops_managers: str = setting(
        "",
        label="GitOps managers",
        help="Field managers, comma separated, whose hosts are never claimed.",
    )


class Metal3:
    """ProviderDriver over BareMetalHosts."""

    kind: ClassVar[str] = "metal3"
    label: ClassVar[str] = "Metal3"
    Config: ClassVar[type] = Metal3Config
    physical: ClassVar[bool] = True
    wipe_class: ClassVar[str] = "verified"
    steps: ClassVar[dict[str, tuple[str, ...]]] = {
        "claim": (
            "select", "configure", "setup", "install", "stop", "move", "boot", "join", "verify",
        ),
        "release": ("drain", "stop", "return", "deprovision", "wipe", "check"),
        "inspect": ("inspect",),
        "wipe": ("stop", "deprovision", "wipe", "check"),
    }  # fmt: skip

    def __init__(self, config: Metal3Config) -> None:
        self.kube = Kube(config.kubeconfig)
        self.namespace = config.namespace
        self.hosts = Hosts(self.kube, config.namespace)
        self.managers = tuple(m.strip() for m in config.gitops_managers.split(",") if m.strip())

    def check(self) -> list[str]:
        try:
            found = next(iter(self.hosts.list({})), None)
        except DriverError as error:
            return [f"{error.message} {error.hint}".strip()]
        if found is None:
            return [f"There are no BareMetalHosts in namespace {self.namespace}."]
        return []

    def stock(self, selector: dict[str, str]) -> list[StockItem]:
        return [self._item(host) for host in self.hosts.list(selector)]

    def _item(self, host: Host) -> StockItem:
        code, why = self._refused(host)
        labels = dict(host.meta.get("labels") or {})
        return StockItem(f"{self.namespace}/{host.name}", labels, host.state, why, code)

    def _refused(self, host: Host) -> tuple[str, str]:
        """Reason code and sentence why a host may not be claimed; two blanks when it may."""
        name = f"The BareMetalHost {host.name}"
        if host.consumer:
            return "HOST_BUSY", f"{name} is used by {consumer(host)}."
        if host.meta.get("deletionTimestamp"):
            return "HOST_BUSY", f"{name} is being deleted."
        if why := host.stopped_by():
            return "HOST_PAUSED", f"{name} is {why}."
        if owner := host.git_owner(self.managers):
            return "GIT_OWNS_POWER", f"{owner} owns power, image or consumer of {host.name}."
        if host.error_type:
            return "HOST_ERROR", f"Metal3 reports a {host.error_type} on {host.name}: {host.error}"
        if host.state != "available":
            return "HOST_BUSY", f"{name} is {host.state or 'new'}, not available."
        if host.image_url:
            return "HOST_BUSY", f"{name} has an image already."
        return "", ""

    def observe(self, ref: ServerRef) -> Observed:
        host = self.hosts.find(host_name(ref))
        if host is None:
            return Observed(exists=False)
        code, error = "", ""
        if host.error_type:
            failure = raised(host, host.state, permanent=False)
            code, error = failure.code, f"{host.error_type}: {host.error}"
        elif why := host.stopped_by():
            code, error = "HOST_PAUSED", f"The host is {why}."
        elif owner := host.git_owner(self.managers):
            code, error = "GIT_OWNS_POWER", f"{owner} owns power, image or consumer of this host."
        return Observed(
            exists=True,
            state=host.state,
            power="on" if host.powered else "off",
            error_code=code,
            error=error,
            claimed_by=str(host.consumer.get("uid") or host.consumer.get("name") or ""),
            at=host.updated,
            detail={
                "labels": dict(host.meta.get("labels") or {}),
                "annotations": host.annotations,
                "online": host.online,
                "image": host.written_url,
                "operations": host.status.get("operationHistory") or {},
            },
        )

    # Towards a running node.

    def ensure(self, spec: NodeSpec, goal: Goal) -> Progress:
        if goal == "prepared":
            return self._prepare(spec)
        host = self._ours(spec)
        if goal == "installed":
            return self._install(spec, host)
        return self._start(spec, host)

    def _prepare(self, spec: NodeSpec) -> Progress:
        """Claim the host and hand over image and data in one patch, power not wanted."""
        host = self.hosts.get(host_name(spec.server))
        ours = is_ours(host, spec)
        if host.consumer and not ours:
            raise busy(host)
        if not ours:
            code, why = self._refused(host)
            if code:
                raise DriverError(why, code, hint="Pick another server.", wait=5)
        change = change_of(host, wish(spec, self.namespace))
        if change and host.state == "available":
            write_secrets(self.kube, self.namespace, spec)
            self.hosts.patch(host, change, host.dhcp_repair(spec.dhcp))
            return Progress(
                False, f"{host.name} is claimed; its settings are read back.", wait=SOON
            )
        if change:
            raise DriverError(
                f"{host.name} is {host.state} and its image is not this claim's.",
                code="HOST_BUSY",
                hint="Release the claim: the server is wiped.",
                permanent=True,
            )
        if host.powered:
            return Progress(False, f"{host.name} is still on; Metal3 powers it off.", wait=1)
        return Progress(
            True,
            f"{host.name} is claimed for {spec.claim_name}; image and data are with Metal3.",
            host.meta["uid"],
            evidence={"host": f"{self.namespace}/{host.name}", "image": host.image_url},
        )

    def _install(self, spec: NodeSpec, host: Host) -> Progress:
        """Power wanted: Metal3's ramdisk writes the image. spec.online says this try has begun."""
        assert spec.image is not None
        refuse_stopped(host)
        if host.state == "provisioned" and host.written_url == spec.image.url:
            return Progress(
                True,
                f"Metal3 wrote {spec.image.name} to {host.name} and checked it.",
                host.meta["uid"],
                percent=100,
                evidence={
                    "image": spec.image.url,
                    "checksum": spec.image.checksum,
                    "provision": (host.status.get("operationHistory") or {}).get("provision"),
                },
            )
        if not host.online:
            return self._begin_install(spec, host)
        if host.error_type:
            failure = raised(host, "installing", permanent=True)
            if failure.permanent:
                # Left alone, Metal3 tries again, succeeds some day, and boots the system here.
                self.hosts.patch(host, {"image": None, "online": False})
            raise failure
        if host.state == "deprovisioning":
            self.hosts.patch(host, {"image": None, "online": False})
            raise DriverError(
                f"Metal3 gave up installing on {host.name} and cleans it.",
                code="INSTALL_FAILED",
                permanent=True,
                hint="Read the host's events, mend, then retry.",
            )
        began = host.operation("provision", "start")
        words = f" since {began:%H:%M:%S} UTC" if began and host.state == "provisioning" else ""
        return Progress(False, f"{host.name} is {host.state}{words}.", host.meta["uid"], wait=2)

    def _begin_install(self, spec: NodeSpec, host: Host) -> Progress:
        if host.state != "available":
            return self._waiting(spec, host)
        write_secrets(self.kube, self.namespace, spec)
        change = {**wish(spec, self.namespace), "online": True}
        self.hosts.patch(host, change, {**host.dhcp_repair(spec.dhcp), **_unhold(host)})
        return Progress(False, f"Metal3 boots its ramdisk on {host.name}.", wait=1)

    def _start(self, spec: NodeSpec, host: Host) -> Progress:
        """Let go of the hold: the operator powers the server on by itself."""
        refuse_stopped(host)
        if host.state != "provisioned":
            raise DriverError(
                f"{host.name} is {host.state}, not provisioned: there is nothing to boot.",
                code="HOST_ERROR",
                permanent=True,
                hint="Release the claim.",
            )
        notes = {**_unhold(host), **host.dhcp_repair(spec.dhcp)}
        if notes or not host.online:
            self.hosts.patch(host, {"online": True}, notes)
            return Progress(False, f"Power is asked for on {host.name}.", wait=1)
        seen = reading(spec, host)
        if seen.power != "on":
            return Progress(False, f"{host.name} reads {seen.power}; Metal3 powers it on.", wait=1)
        return Progress(True, f"{host.name} is on.", host.meta["uid"], evidence=told(seen))

    # Back to blank.

    def remove(self, spec: NodeSpec, goal: RemoveGoal) -> Progress:
        host = self.hosts.find(host_name(spec.server))
        if goal == "released" and (host is None or not is_ours(host, spec)) and not spec.media:
            drop_secrets(self.kube, self.namespace, spec)
            return Progress(True, f"{spec.server.name} carries nothing of {spec.claim_name}.")
        if host is None:
            host = self.hosts.get(host_name(spec.server))
        if host.consumer and not is_ours(host, spec):
            raise busy(host)
        if not host.consumer and goal == "stopped":
            return self._off(spec, host)
        refuse_stopped(host)
        if goal == "stopped":
            return (
                self._stop_install(spec, host) if spec.verb == "claim" else self._stop(spec, host)
            )
        return self._deprovision(spec, host) if spec.media else self._let_go(spec, host)

    def _stop_install(self, spec: NodeSpec, host: Host) -> Progress:
        """After an install: hold the server off before its system begins, or say that it had begun.

        Not before `provisioned`, because the operator deletes the key when provisioning completes.
        """
        if host.state != "provisioned":
            return Progress(False, f"{host.name} is {host.state}, not provisioned yet.", wait=SOON)
        held = host.annotations.get(HOLD) == HOLD_VALUE
        if not held:
            host = self.hosts.patch(host, None, {HOLD: HOLD_VALUE, **host.dhcp_repair(spec.dhcp)})
        seen = reading(spec, host)
        booted = BOOTED in host.annotations
        if booted or had_begun(spec, host, seen):
            if not booted:
                self.hosts.patch(host, None, {BOOTED: HOLD_VALUE})
            raise DriverError(
                f"The system on {host.name} had begun to boot in the provisioning segment.",
                code="OS_BOOTED_IN_PROVISIONING",
                permanent=True,
                hint="Release the claim: the server is wiped.",
            )
        if not held or seen.power != "off":
            return Progress(
                False, f"{host.name} is held off; it still reads {seen.power}.", wait=SOON
            )
        return Progress(True, f"{host.name} reads off and is held off.", evidence=told(seen))

    def _stop(self, spec: NodeSpec, host: Host) -> Progress:
        """Off before a release, whatever ran: a system, our agent, or an unfinished install."""
        if host.provisioned and not host.live:
            if host.online or host.annotations.get(HOLD) != HOLD_VALUE:
                notes = {HOLD: HOLD_VALUE, **host.dhcp_repair(spec.dhcp)}
                self.hosts.patch(host, {"online": False}, notes)
                return Progress(False, f"{host.name} is told to power off.", wait=SOON)
            return self._read_off(spec, host)
        # Nothing that is worth keeping is on the disks: also the image is taken back, so that the
        # operator has no reason to power this server on again.
        if host.live or host.online or (host.image_url and host.state == "provisioning"):
            self.hosts.patch(host, {**CLEAR, "online": False}, _unhold(host) or None)
            return Progress(False, f"{host.name} is told to stop and to forget its image.", wait=1)
        if host.state != "available":
            return self._waiting(spec, host)
        return self._read_off(spec, host)

    def _off(self, spec: NodeSpec, host: Host) -> Progress:
        """A host that is nobody's any more needs only to be off."""
        if host.online:
            self.hosts.patch(host, {"online": False})
            return Progress(False, f"{host.name} is told to power off.", wait=1)
        return self._read_off(spec, host)

    def _read_off(self, spec: NodeSpec, host: Host) -> Progress:
        seen = reading(spec, host)
        if seen.power != "off":
            return Progress(False, f"{host.name} reads {seen.power}.", wait=SOON)
        return Progress(True, f"{host.name} reads off.", host.meta["uid"], evidence=told(seen))

    def _deprovision(self, spec: NodeSpec, host: Host) -> Progress:
        """One patch puts our agent where the tenant's image was; done when Metal3 has let go of it.

        A claim that failed before Setup takes the host here: it leaves through a wipe as any other.
        """
        wanted = {**CLEAR, "image": iso(spec), "online": False, "consumerRef": consumer_ref(spec)}
        change = change_of(host, wanted)
        notes = host.dhcp_repair(spec.dhcp)
        if change or notes:
            self.hosts.patch(host, change, notes)
            return Progress(False, f"{host.name} forgets the tenant's image and data.", wait=1)
        if host.state != "available" or host.written_url:
            return self._waiting(spec, host)
        return Progress(True, f"Nothing of {spec.claim_name} is left in {host.name}'s object.")

    def _let_go(self, spec: NodeSpec, host: Host) -> Progress:
        """Give the host free: no image, no data, off, available, and at last no consumer."""
        wanted = {**CLEAR, "online": False}
        change = change_of(host, wanted)
        notes = {**_unhold(host), **host.dhcp_repair(spec.dhcp)}
        if change or notes:
            self.hosts.patch(host, change, notes)
            return Progress(False, f"{host.name} forgets its image.", wait=1)
        if host.state != "available" or host.powered:
            return self._waiting(spec, host)
        self.hosts.patch(host, {"consumerRef": None})
        return Progress(False, f"{host.name} is given free; read back.", wait=SOON)

    def wipe(self, spec: NodeSpec) -> Progress:
        """Boot our agent as live ISO; done when it boots. Its report comes by its own door."""
        host = self._ours(spec)
        refuse_stopped(host)
        if spec.media is None:
            raise DriverError(
                f"{host.name} has no agent media.", code="AGENT_SILENT", permanent=True
            )
        if host.state == "provisioned" and host.written_url == spec.media.url:
            return Progress(True, f"Our agent boots on {host.name}.", host.meta["uid"])
        wanted = {**CLEAR, "image": iso(spec), "online": True}
        change = change_of(host, wanted)
        notes = {**_unhold(host), **host.dhcp_repair(spec.dhcp)}
        if change or notes:
            self.hosts.patch(host, change, notes)
            return Progress(False, f"Metal3 inserts our agent's ISO on {host.name}.", wait=1)
        if host.error_type:
            raise raised(host, "booting our agent", permanent=True)
        return Progress(False, f"{host.name} is {host.state}; our agent boots next.", wait=1)

    def _waiting(self, spec: NodeSpec, host: Host) -> Progress:
        """Metal3 is busy with the host, or in trouble and trying again: tell it in its words."""
        if not host.error_type:
            return Progress(False, f"{host.name} is {host.state}.", wait=2)
        failure = raised(host, host.state, permanent=False)
        attempt = spec.since.isoformat() if spec.since else ""
        if attempt and host.annotations.get(RETRY) != attempt:
            self.hosts.patch(host, None, {RETRY: attempt})
        return Progress(False, failure.message, wait=2, evidence={"code": failure.code})

    def _ours(self, spec: NodeSpec) -> Host:
        host = self.hosts.get(host_name(spec.server))
        if not is_ours(host, spec):
            raise busy(host)
        return host


def _unhold(host: Host) -> dict[str, Any]:
    return {key: None for key in (HOLD, BOOTED, RETRY) if key in host.annotations}
