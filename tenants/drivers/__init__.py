"""The ControlPlaneDriver protocol and the values that cross it:

one tenant's Kubernetes API, and joining it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Protocol

from gpucloud.drivers import Progress


@dataclass(frozen=True)
class ClusterSpec:
    """One tenant cluster as wanted. `values` is the rendered vcluster.yaml as data, autoNodes
    already taken out.

    `segment` carries name, vlan, cidr, gateway, host_bridge; `node_endpoint` is `ip:port` on
    that segment.
    """

    uid: str
    name: str
    tenant: str
    namespace: str
    chart_version: str
    values: dict[str, Any]
    segment: dict[str, Any]
    node_endpoint: str
    owner: str = ""
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Access:
    """How to reach a tenant API. `kubeconfig` is a secret: encrypted at once, never logged."""

    kubeconfig: str
    client_endpoint: str
    node_endpoint: str
    ca_hash: str


@dataclass(frozen=True)
class JoinData:
    """Join material of one claim:

    `token_id` is public, `user_data` (cloud-config text) holds the secret.
    """

    token_id: str
    user_data: str
    expires: datetime


@dataclass(frozen=True)
class NodeSeen:
    """One Node object of the tenant API."""

    name: str
    system_uuid: str
    ready: bool
    created: datetime | None
    labels: dict[str, str]
    addresses: tuple[str, ...] = ()
    kubelet: str = ""
    allocatable: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JoinSpec:
    """What Configure needs for one claim: the node's name, its labels and taints, its claim uid."""

    claim_uid: str
    node_name: str
    labels: dict[str, str]
    taints: tuple[dict[str, str], ...] = ()
    ssh_keys: tuple[str, ...] = ()


class ControlPlaneDriver(Protocol):
    """Tenant control planes of one kind. Raises DriverError only; never sleeps or loops; every
    call is idempotent.

    `ensure` reports the sequence scheduling, creating-namespace, deploying, available,
    connected, ready in Progress.evidence["phase"], with Progress.evidence["conditions"] as a
    list of {type, status, reason, at}.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    Config: ClassVar[type]
    phases: ClassVar[tuple[str, ...]]

    def __init__(self, config: Any) -> None: ...

    def check(self) -> list[str]: ...

    def ensure_network(self, spec: ClusterSpec) -> Progress:
        """The cluster's attachment on the host side (NetworkAttachmentDefinition), read back."""

    def ensure(self, spec: ClusterSpec) -> Progress: ...

    def access(self, spec: ClusterSpec) -> Access: ...

    def join_data(self, spec: ClusterSpec, join: JoinSpec, access: Access) -> JoinData:
        """Make (or extend) the claim's bootstrap token and return the user data that joins with
        it.
        """

    def extend(self, spec: ClusterSpec, claim_uid: str, access: Access) -> None:
        """Extend the expiry of the claim's token while it may still be needed."""

    def revoke(self, spec: ClusterSpec, claim_uid: str, access: Access) -> None:
        """Delete the claim's token; one that is absent is done."""

    def nodes(self, spec: ClusterSpec, access: Access) -> list[NodeSeen]: ...

    def drain(self, spec: ClusterSpec, node_name: str, access: Access) -> Progress:
        """Cordon, evict what can be, delete the Node object;

        done when it is gone. Absent is done.
        """

    def remove(self, spec: ClusterSpec) -> Progress: ...
