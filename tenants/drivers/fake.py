"""A control plane in memory, with looks and faults: what the others promise, without a platform."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import yaml

from gpucloud.drivers import Config, DriverError, Progress, setting
from tenants.drivers import Access, ClusterSpec, JoinData, JoinSpec, NodeSeen
from tenants.drivers.kubeadm import token_id, user_data

PHASES = ("scheduling", "creating-namespace", "deploying", "available", "connected", "ready")


@dataclass(frozen=True)
class FakeControlPlaneConfig(Config):
    """Instances of the same name share one platform, as two connections to one would."""

    name: str = setting("fake", label="Name of the platform in memory")
    looks: int = setting(1, label="Looks that each phase takes")


@dataclass
class FakeCluster:
    """One tenant cluster; tests put Nodes into it, as machines would."""

    looks: int = 0
    attached: bool = False
    tokens: dict[str, datetime] = field(default_factory=dict)
    nodes: dict[str, NodeSeen] = field(default_factory=dict)


@dataclass
class FakePlatform:
    """All clusters of one platform; `faults` maps a method's name to its reason code."""

    clusters: dict[str, FakeCluster] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


class FakeControlPlane:
    """ControlPlaneDriver over a FakePlatform."""

    kind: ClassVar[str] = "fake"
    label: ClassVar[str] = "Fake control plane (in memory)"
    Config: ClassVar[type] = FakeControlPlaneConfig
    phases: ClassVar[tuple[str, ...]] = PHASES
    worlds: ClassVar[dict[str, FakePlatform]] = {}

    def __init__(self, config: FakeControlPlaneConfig) -> None:
        self.config = config
        self.platform = self.worlds.setdefault(config.name, FakePlatform())

    def check(self) -> list[str]:
        if "check" in self.platform.faults:
            return ["The fake platform does not answer. Take the fault away."]
        return []

    def ensure_network(self, spec: ClusterSpec) -> Progress:
        self._fail("ensure_network", spec)
        cluster = self.platform.clusters.setdefault(spec.uid, FakeCluster())
        done, cluster.attached = cluster.attached, True
        return Progress(done, f"The attachment of {spec.name} is made.", "fake", wait=0.1)

    def ensure(self, spec: ClusterSpec) -> Progress:
        self._fail("ensure", spec)
        cluster = self.platform.clusters.setdefault(spec.uid, FakeCluster())
        at = min(cluster.looks // max(self.config.looks, 1), len(PHASES) - 1)
        cluster.looks += 1
        done = PHASES[at] == "ready"
        seen = datetime.now(UTC).isoformat(timespec="seconds")
        conditions = [
            {"type": phase, "status": "True", "reason": "", "message": "", "at": seen}
            for phase in PHASES[:at]
        ]
        evidence = {"phase": PHASES[at], "conditions": conditions}
        return Progress(done, f"{spec.name} is {PHASES[at]}.", "fake", wait=0.1, evidence=evidence)

    def access(self, spec: ClusterSpec) -> Access:
        self._fail("access", spec)
        self._cluster(spec)
        return Access(
            kubeconfig="apiVersion: v1\nkind: Config\nclusters: []\n",
            client_endpoint=f"https://{spec.name}.invalid:6443",
            node_endpoint=spec.node_endpoint,
            ca_hash=f"sha256:{'0' * 64}",
        )

    def join_data(self, spec: ClusterSpec, join: JoinSpec, access: Access) -> JoinData:
        self._fail("join_data", spec)
        ident = token_id(join.claim_uid)
        expires = datetime.now(UTC) + timedelta(hours=1)
        self._cluster(spec).tokens[join.claim_uid] = expires
        return JoinData(ident, user_data(join, spec.node_endpoint, f"{ident}.{'0' * 16}"), expires)

    def extend(self, spec: ClusterSpec, claim_uid: str, access: Access) -> None:
        self._fail("extend", spec)
        cluster = self._cluster(spec)
        if claim_uid not in cluster.tokens:
            raise DriverError("The claim's bootstrap token is gone.", code="KUBE_ERROR")
        cluster.tokens[claim_uid] = datetime.now(UTC) + timedelta(hours=1)

    def revoke(self, spec: ClusterSpec, claim_uid: str, access: Access) -> None:
        self._fail("revoke", spec)
        self._cluster(spec).tokens.pop(claim_uid, None)

    def nodes(self, spec: ClusterSpec, access: Access) -> list[NodeSeen]:
        self._fail("nodes", spec)
        return list(self._cluster(spec).nodes.values())

    def drain(self, spec: ClusterSpec, node_name: str, access: Access) -> Progress:
        self._fail("drain", spec)
        gone = self._cluster(spec).nodes.pop(node_name, None)
        return Progress(gone is None, f"Node {node_name} leaves {spec.name}.", wait=0.1)

    def remove(self, spec: ClusterSpec) -> Progress:
        self._fail("remove", spec)
        gone = self.platform.clusters.pop(spec.uid, None)
        return Progress(gone is None, f"{spec.name} is being removed.", wait=0.1)

    def _cluster(self, spec: ClusterSpec) -> FakeCluster:
        found = self.platform.clusters.get(spec.uid)
        if found is None or found.looks == 0:
            raise DriverError(f"{spec.name} has no API yet.", code="CLUSTER_NOT_READY")
        return found

    def _fail(self, doing: str, spec: ClusterSpec) -> None:
        if code := self.platform.faults.get(doing):
            raise DriverError(
                f"The fake platform fails {doing} of {spec.name}.",
                code,
                permanent=code == "CONTROL_PLANE_FAILED",
                hint="Take the fault away, then retry.",
            )


def boot(user_data: str, system_uuid: str) -> None:
    """What a machine with this user data does on its first boot: join as a Node that is Ready."""
    config = yaml.safe_load(user_data) or {}
    ident = re.search(r"token=([a-z0-9]{6})\.", str(config.get("runcmd", "")))
    labels = re.search(r"--node-labels=([^\s\"']+)", str(config.get("write_files", "")))
    pairs = (pair.partition("=") for pair in labels[1].split(",")) if labels else ()
    for platform in FakeControlPlane.worlds.values():
        for cluster in platform.clusters.values():
            known = {token_id(claim_uid) for claim_uid in cluster.tokens}
            if ident and ident[1] in known and config["hostname"] not in cluster.nodes:
                cluster.nodes[config["hostname"]] = NodeSeen(
                    name=config["hostname"],
                    system_uuid=system_uuid.lower(),
                    ready=True,
                    created=datetime.now(UTC),
                    labels={key: value for key, _, value in pairs},
                    kubelet="v1.36.0",
                )
