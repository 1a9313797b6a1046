"""The operator's state machine: one look at a BareMetalHost, at most one action, one delay."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from gpucloud.lab.kube.metal3.host import (
    DETACHED,
    FINALIZER,
    HARDWARE_DETAILS,
    INSPECT,
    PAUSED,
    REBOOT,
    STATUS,
    Host,
)
from gpucloud.lab.kube.metal3.jobs import Ironic, IronicError, JobState, deploy_job, job_of

MAX_PROVISIONING_FAILURES = 5
STEADY = ("available", "provisioned", "externally provisioned")

# Seconds until the next look. A poll is one second at most whatever LAB_SPEED, so that the race
# between the operator and a machine's POST stays what it is on real hardware.
NOW = 0.0
POLL = 1.0
RARELY = 600.0


class Failed(Exception):
    """The action failed; it is on the host's status already and the controller backs off."""


async def step(host: Host, ironic: Ironic) -> float:
    """Look once, act at most once; return seconds until the next look or raise Failed."""
    if PAUSED in host.annotations:
        return RARELY
    if restore_status(host):
        return NOW
    if not host.deleting and FINALIZER not in host.finalizers:
        host.finalizers.append(FINALIZER)
        return NOW
    if host.deleting:
        return await deletion(host, ironic)
    if not host.bmc.get("address"):
        host.state = "unmanaged"
        host.clear_error("discovered")
        return RARELY
    if DETACHED in host.annotations and host.state in STEADY:
        ironic.forget(host)
        host.clear_error("detached")
        return RARELY
    if host.status["operationalStatus"] == "detached":
        host.clear_error()
    if host.state in ("", "unmanaged"):
        host.state = "registering"
        host.begin("register")
        host.clear_error()
        return NOW
    await validate_access(host, ironic)
    return await HANDLERS[host.state](host, ironic)


def restore_status(host: Host) -> bool:
    """Take the status from the annotation of a moved host, once, when there is none yet."""
    saved = host.annotations.get(STATUS)
    if not saved or host.state:
        return False
    try:
        host.status.update(json.loads(saved))
    except ValueError:
        host.events.append(("Warning", "InvalidAnnotationValue", f"{STATUS} is not JSON"))
    host.drop.add(STATUS)
    return True


async def validate_access(host: Host, ironic: Ironic) -> None:
    """Register with Ironic when it knows not this address and Secret, or refused before."""
    if ironic.known(host) and host.status.get("errorType") != "registration error":
        return
    name = host.bmc.get("credentialsName", "")
    if host.credentials is None:
        host.fail("registration error", f"The BMC secret {host.namespace}/{name} does not exist")
        raise Failed
    tried = {
        "credentials": {"name": name, "namespace": host.namespace},
        "credentialsVersion": host.credentials_version,
    }
    host.status["triedCredentials"] = tried
    try:
        host.status["provisioning"]["ID"] = await ironic.register(host)
    except IronicError as error:
        if error.kind == "credentials":
            host.events.append(("Warning", "BMCCredentialError", str(error)))
        host.fail("registration error", str(error))
        raise Failed from error
    host.status["goodCredentials"] = tried
    if host.state == "registering":
        host.events.append(("Normal", "BMCAccessValidated", "Verified access to BMC"))
    elif host.status.get("errorType") == "registration error":
        host.clear_error()


async def registering(host: Host, ironic: Ironic) -> float:
    host.status["poweredOn"] = await _power(host, ironic)
    host.finish("register")
    host.complete("Registered", "Registered new host")
    if host.spec.get("externallyProvisioned"):
        host.state = "externally provisioned"
    elif host.inspection_disabled:
        host.state = "preparing"
    else:
        host.state = "inspecting"
        host.begin("inspect")
    return NOW


async def inspecting(host: Host, ironic: Ironic) -> float:
    seen = await ironic.work(host, job_of(host, "inspect", "inspect"))
    if seen.state == "running":
        host.clear_error()
        return POLL
    if seen.state == "failed":
        host.fail("inspection error", seen.error)
        raise Failed
    host.status["hardware"] = ironic.details(host, seen.inventory)
    host.status["hardwareProfile"] = "unknown"
    await _note_power(host, ironic)
    host.finish("inspect")
    host.complete("InspectionComplete", "Hardware inspection completed")
    host.state = "preparing"
    return NOW


async def preparing(host: Host, ironic: Ironic) -> float:
    if details := host.annotations.get(HARDWARE_DETAILS):
        if host.inspection_disabled:
            host.status["hardware"] = json.loads(details)
        host.drop.add(HARDWARE_DETAILS)
    host.status["provisioning"]["bootMode"] = host.spec.get("bootMode") or "UEFI"
    if hints := host.spec.get("rootDeviceHints"):
        host.status["provisioning"]["rootDeviceHints"] = hints
    host.clear_error()
    host.status["errorCount"] = 0
    host.state = "available"
    return NOW


async def available(host: Host, ironic: Ironic) -> float:
    if host.spec.get("externallyProvisioned"):
        host.state = "externally provisioned"
        return NOW
    if host.annotations.get(INSPECT) == "":
        host.drop.add(INSPECT)
        host.state = "inspecting"
        host.begin("inspect")
        return NOW
    attempted = host.status.get("lastAttemptedImage") or {}
    if attempted != host.image:
        host.status["provisioningFailCount"] = 0
    if host.online and host.image:
        if host.status["provisioningFailCount"] < MAX_PROVISIONING_FAILURES:
            host.status["lastAttemptedImage"] = dict(host.image)
            host.state = "provisioning"
            host.begin("provision")
            host.clear_error()
            return NOW
        host.status["operationalStatus"] = "error"
        host.status["errorType"] = "provisioning error"
        host.status["errorMessage"] = (
            f"Provisioning failed {MAX_PROVISIONING_FAILURES} times; change the image to try again"
        )
        return RARELY
    return await manage_power(host, ironic, host.online)


async def provisioning(host: Host, ironic: Ironic) -> float:
    wanted, tried = host.image, host.status.get("lastAttemptedImage") or {}
    if host.failed or not wanted or wanted.get("url") != tried.get("url"):
        host.state = "deprovisioning"
        host.begin("deprovision")
        return NOW
    try:
        job = deploy_job(host)
        seen = await ironic.work(host, job)
    except LookupError as error:
        seen = JobState("failed", str(error.args[0]))
    if seen.state == "running":
        return POLL
    if seen.state == "failed":
        host.status["provisioningFailCount"] += 1
        host.fail("provisioning error", seen.error)
        raise Failed
    host.clear_reboots()
    host.status["provisioning"]["image"] = dict(tried)
    host.status["provisioningFailCount"] = 0
    await _note_power(host, ironic)
    host.finish("provision")
    host.complete("ProvisioningComplete", f"Image provisioning completed for {tried['url']}")
    host.state = "provisioned"
    return NOW


async def provisioned(host: Host, ironic: Ironic) -> float:
    if not host.image or host.image.get("url") != host.provisioned_image.get("url"):
        host.state = "deprovisioning"
        host.begin("deprovision")
        host.events.append(("Normal", "DeprovisioningStarted", "Image deprovisioning started"))
        return NOW
    return await manage_power(host, ironic, host.online and not host.held_off())


async def externally_provisioned(host: Host, ironic: Ironic) -> float:
    if not host.spec.get("externallyProvisioned"):
        host.status["provisioning"]["image"] = dict(host.image)
        host.state = "provisioned"
        return NOW
    return await manage_power(host, ironic, host.online and not host.held_off())


async def deprovisioning(host: Host, ironic: Ironic) -> float:
    kind = "clean" if host.cleaning_wanted else "power-off"
    seen = await ironic.work(host, job_of(host, kind, "deprovision"))
    if seen.state == "running":
        host.clear_error()
        return POLL
    if seen.state == "failed":
        host.fail("provisioning error", seen.error)
        raise Failed
    host.status["provisioning"].pop("image", None)
    await _note_power(host, ironic)
    host.finish("deprovision")
    if host.status["provisioningFailCount"] == 0:
        host.complete("DeprovisioningComplete", "Image deprovisioning completed")
    else:
        host.clear_error()
    host.state = "powering off before delete" if host.deleting else "available"
    return NOW


async def manage_power(host: Host, ironic: Ironic, wanted: bool) -> float:
    """Read the power, store it, re-assert what spec.online and reboot annotations ask for."""
    host.status["poweredOn"] = on = await _power(host, ironic)
    if not on and REBOOT in host.annotations:
        host.drop.add(REBOOT)
        return NOW
    try:
        if on != wanted:
            hard = host.held_hard() or host.status["errorCount"] > 0
            await ironic.set_power(host, wanted, hard)
            name = "PowerOn" if wanted else "PowerOff"
            host.events.append(("Normal", name, f"Host powered {'on' if wanted else 'off'}"))
        elif host.status["provisioningFailCount"] == 0:
            host.clear_error()
            host.status["errorCount"] = 0
    except IronicError as error:
        host.fail("power management error", str(error))
        raise Failed from error
    return POLL


async def deletion(host: Host, ironic: Ironic) -> float:
    """Deprovision what is provisioned, power off, forget; after three failures go on anyhow."""
    if host.state in ("provisioning", "provisioned"):
        host.state = "deprovisioning"
        host.begin("deprovision")
        return NOW
    give_up = host.status["errorCount"] > 3 or host.credentials is None
    if host.state == "deprovisioning" and not give_up:
        await validate_access(host, ironic)
        return await deprovisioning(host, ironic)
    if host.state in ("", "unmanaged", "registering", "deleting"):
        host.state = "deleting"
        ironic.forget(host)
        host.finalizers = [f for f in host.finalizers if f != FINALIZER]
        return RARELY
    host.state = "powering off before delete"
    if not give_up:
        await validate_access(host, ironic)
        if await _power(host, ironic):
            await ironic.set_power(host, on=False, hard=True)
            return POLL
    host.state = "deleting"
    return NOW


async def _power(host: Host, ironic: Ironic) -> bool:
    try:
        return await ironic.power(host)
    except IronicError as error:
        host.fail("power management error", str(error))
        raise Failed from error


async def _note_power(host: Host, ironic: Ironic) -> None:
    """Store the power at the end of a job; a BMC silent just then does not undo the job."""
    with suppress(IronicError):
        host.status["poweredOn"] = await ironic.power(host)


HANDLERS: Mapping[str, Callable[[Host, Ironic], Awaitable[float]]] = {
    "registering": registering,
    "inspecting": inspecting,
    "preparing": preparing,
    "available": available,
    "provisioning": provisioning,
    "provisioned": provisioned,
    "externally provisioned": externally_provisioned,
    "deprovisioning": deprovisioning,
}
