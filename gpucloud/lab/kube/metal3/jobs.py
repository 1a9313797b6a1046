"""What the operator asks of Ironic: jobs named by attempt, their state, and how they fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import yaml

from gpucloud.lab.kube.metal3.host import Host


class IronicError(Exception):
    """Ironic could not do it. `kind` is credentials, unreachable, conflict or power."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass
class Job:
    """What a node shall do: a kind, an id of this very attempt, what the ramdisk needs."""

    id: str
    kind: str
    image: dict[str, Any] = field(default_factory=dict)
    user_data: str = ""
    network_data: dict[str, Any] = field(default_factory=dict)
    meta_data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobState:
    state: str  # running, done, failed
    error: str = ""
    inventory: dict[str, Any] = field(default_factory=dict)


class Ironic(Protocol):
    """What the operator asks of Ironic, one node per host."""

    async def register(self, host: Host) -> str: ...

    def known(self, host: Host) -> bool: ...

    async def power(self, host: Host) -> bool: ...

    async def set_power(self, host: Host, on: bool, hard: bool) -> None: ...

    async def work(self, host: Host, job: Job) -> JobState: ...

    def details(self, host: Host, inventory: dict[str, Any]) -> dict[str, Any]: ...

    def forget(self, host: Host) -> None: ...


def job_of(host: Host, kind: str, operation: str) -> Job:
    """Name the job by its start; Ironic begins it anew when asked again after a failure."""
    began = host.status["operationHistory"].get(operation, {}).get("start", "")
    return Job(id=f"{kind}/{began}", kind=kind)


def deploy_job(host: Host) -> Job:
    live = host.image.get("format") == "live-iso"
    job = job_of(host, "live-iso" if live else "deploy", "provision")
    job.image = dict(host.image)
    if live:
        return job
    job.user_data = _secret(host, "userData")
    name = "networkData" if host.spec.get("networkData") else "preprovisioningNetworkDataName"
    job.network_data = _mapping(_secret(host, name, "networkData"))
    uid = str(host.meta.get("uid", ""))
    job.meta_data = {
        "uuid": uid,
        "instance-id": uid,
        "name": host.name,
        "local-hostname": host.name,
        "local_hostname": host.name,
        "metal3-namespace": host.namespace,
        "metal3-name": host.name,
        **_mapping(_secret(host, "metaData")),
    }
    return job


def _secret(host: Host, field_name: str, key: str = "") -> str:
    """Return the text of the Secret that a spec field names; empty when it names none."""
    wish = host.spec.get(field_name)
    name = wish if isinstance(wish, str) else (wish or {}).get("name")
    if not name:
        return ""
    data = host.secrets.get(name)
    if data is None:
        raise LookupError(
            f"failed to retrieve {field_name}: Secret {host.namespace}/{name} not found"
        )
    for one in (key or field_name, "value"):
        if one in data:
            return data[one]
    raise LookupError(
        f"failed to retrieve {field_name}: Secret {host.namespace}/{name} lacks a key"
    )


def _mapping(text: str) -> dict[str, Any]:
    read = yaml.safe_load(text) if text else {}
    return read if isinstance(read, dict) else {}
