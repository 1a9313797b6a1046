"""Tenant control planes on a vCluster Platform: an instance and an attachment each."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import yaml

from gpucloud.drivers import Config, DriverError, Progress, setting
from inventory.drivers.kube import Kube, Obj, path_of, secret_text
from tenants.drivers import Access, ClusterSpec, JoinData, JoinSpec, NodeSeen, kubeadm

API = "management.loft.sh/v1"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
OWNER = "gpucloud.dev/cluster-uid"

# Our phase is the first of these whose condition is not true yet; the platform's order of the last
# two is not fixed, so that each counts by itself.
SIGNALS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("scheduling", ("Scheduled",)),
    ("creating-namespace", ("SpaceSynced", "SpaceReady")),
    ("deploying", ("VirtualClusterDeployed",)),
    ("available", ("VirtualClusterReady",)),
    ("connected", ("VirtualClusterOnline",)),
)
WORDS = {
    "scheduling": "The control plane is being scheduled",
    "creating-namespace": "Its namespace is being made",
    "deploying": "The control plane is being deployed",
    "available": "The control plane is starting",
    "connected": "The control plane connects to the platform",
    "ready": "The control plane is ready",
}


@dataclass(frozen=True)
class VclusterPlatformConfig(Config):
    kubeconfig: str = setting(
        label="Kubeconfig", help="Of the cluster where control planes run.", secret=True
    )
    cluster: str = setting("loft-cluster", label="Name of the connected cluster")
    host_namespace: str = setting(
        "loft-{tenant}-v-{name}", label="Namespace of a control plane", help="{tenant} and {name}."
    )
    bridge: str = setting("br-tenant", label="Bridge of tenant VLANs on the host's nodes")
    untagged: str = setting(
        "",
        label="Untagged bridges",
        help="Bridges that are one VLAN as a whole, for example br0=100, br1=200.",
    )
    client_endpoint: str = setting(
        "",
        label="Address for clients",
        help="https://{name}.{tenant}.example.com; empty keeps the one of the platform's Secret.",
    )


class VclusterPlatform:
    """ControlPlaneDriver over VirtualClusterInstances; pools stay ours, autoNodes goes nowhere."""

    kind: ClassVar[str] = "vcluster_platform"
    label: ClassVar[str] = "vCluster Platform"
    Config: ClassVar[type] = VclusterPlatformConfig
    phases: ClassVar[tuple[str, ...]] = (*(phase for phase, _ in SIGNALS), "ready")

    def __init__(self, config: VclusterPlatformConfig) -> None:
        self.config = config
        self.kube = Kube(config.kubeconfig)

    def check(self) -> list[str]:
        try:
            found = self.kube.get("/apis/management.loft.sh/v1")
        except DriverError as error:
            return [f"{error.message} {error.hint}".strip()]
        if found is None:
            return [f"{self.kube.host} does not serve {API}: there is no vCluster Platform."]
        return []

    # The control plane.

    def ensure_network(self, spec: ClusterSpec) -> Progress:
        if not spec.segment:
            raise DriverError(
                f"{spec.name} has no segment.", code="NO_SEGMENT", hint="Give it a segment."
            )
        namespace, name = self._attachment(spec)
        path = path_of("k8s.cni.cncf.io/v1", "network-attachment-definitions", namespace)
        wanted = _attachment_config(spec, self._bridge(spec), self.config.untagged)
        found = self.kube.get(f"{path}/{name}")
        if found is None:
            body = {
                "apiVersion": "k8s.cni.cncf.io/v1",
                "kind": "NetworkAttachmentDefinition",
                "metadata": {"name": name, "labels": _labels(spec)},
                "spec": {"config": wanted},
            }
            self.kube.create(path, body)
            return Progress(False, f"Attachment {name} is made; it is read back.", wait=0.5)
        if not _same(str((found.get("spec") or {}).get("config", "")), wanted):
            self._refuse_foreign(found, spec, f"attachment {namespace}/{name}")
            self.kube.merge(f"{path}/{name}", {"spec": {"config": wanted}})
            return Progress(False, f"Attachment {name} is corrected; it is read back.", wait=0.5)
        return Progress(
            True,
            f"Attachment {name} leads to {spec.segment['name']}, VLAN {spec.segment['vlan']}.",
            str(found["metadata"]["uid"]),
            evidence={"attachment": f"{namespace}/{name}", "config": yaml.safe_load(wanted)},
        )

    def ensure(self, spec: ClusterSpec) -> Progress:
        found = self.kube.get(self._path(spec))
        if found is None:
            self.kube.create(self._path(spec, collection=True), self._instance(spec))
            return self._progress(False, "scheduling", [], "")
        self._refuse_foreign(found, spec, f"virtual cluster {spec.namespace}/{spec.name}")
        if found["metadata"].get("deletionTimestamp"):
            return self._progress(False, "scheduling", [], "", "It is still being deleted")
        if change := self._difference(found, spec):
            body = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}}
            self.kube.merge(self._path(spec), {**body, "spec": change})
            # The status still tells of the values before; the platform has to look first.
            return self._progress(False, "deploying", [], found["metadata"]["uid"])
        return self._read(found)

    def _instance(self, spec: ClusterSpec) -> Obj:
        owner = {"owner": {"user": spec.owner}} if spec.owner else {}
        return {
            "apiVersion": API,
            "kind": "VirtualClusterInstance",
            "metadata": {"name": spec.name, "labels": {**spec.labels, **_labels(spec)}},
            "spec": {
                "template": self._template(spec),
                "clusterRef": {
                    "cluster": self.config.cluster,
                    "namespace": self._host_namespace(spec),
                    "virtualCluster": spec.name,
                },
                **owner,
            },
        }

    def _template(self, spec: ClusterSpec) -> Obj:
        return {
            "helmRelease": {
                "chart": {"version": spec.chart_version},
                "values": yaml.safe_dump(self._values(spec), sort_keys=False),
            },
            "pro": {"enabled": True},
        }

    def _values(self, spec: ClusterSpec) -> Obj:
        """The platform's values: no autoNodes, endpoint and attachment where missing."""
        values = copy.deepcopy(spec.values)
        values.get("privateNodes", {}).pop("autoNodes", None)
        plane = values.setdefault("controlPlane", {})
        if spec.node_endpoint:
            plane.setdefault("endpoint", spec.node_endpoint)
        pods = plane.setdefault("statefulSet", {}).setdefault("pods", {})
        namespace, name = self._attachment(spec)
        pods.setdefault("annotations", {}).setdefault(NETWORKS, f"{namespace}/{name}")
        return values

    def _difference(self, found: Obj, spec: ClusterSpec) -> Obj:
        """What of the template differs; values are compared as data, not as text."""
        release = ((found.get("spec") or {}).get("template") or {}).get("helmRelease") or {}
        there = (
            (release.get("chart") or {}).get("version"),
            yaml.safe_load(release.get("values") or ""),
        )
        if there == (spec.chart_version, self._values(spec)):
            return {}
        return {"template": self._template(spec)}

    def _read(self, found: Obj) -> Progress:
        status = found.get("status") or {}
        conditions = [
            {
                "type": str(one.get("type")),
                "status": str(one.get("status")),
                "reason": str(one.get("reason") or ""),
                "message": str(one.get("message") or ""),
                "at": one.get("lastTransitionTime"),
            }
            for one in status.get("conditions") or []
        ]
        said = str(status.get("message") or "")
        if status.get("phase") == "Failed":
            raise DriverError(
                f"The platform gave up on {found['metadata']['name']}:"
                f" {said or 'no message'} ({status.get('reason') or 'no reason'}).",
                code="CONTROL_PLANE_FAILED",
                permanent=True,
                hint="Correct the template or its parameters, then retry.",
            )
        true = {one["type"] for one in conditions if one["status"] == "True"}
        for phase, signals in SIGNALS:
            if not true.issuperset(signals):
                return self._progress(False, phase, conditions, found["metadata"]["uid"], said)
        done = status.get("phase") == "Ready"
        phase = "ready" if done else "connected"
        return self._progress(done, phase, conditions, found["metadata"]["uid"], said)

    def _progress(
        self, done: bool, phase: str, conditions: list[dict[str, Any]], ref: str, said: str = ""
    ) -> Progress:
        detail = f"{WORDS[phase]}: {said}." if said else f"{WORDS[phase]}."
        evidence = {"phase": phase, "conditions": conditions}
        return Progress(done, detail, ref, wait=1, evidence=evidence)

    def access(self, spec: ClusterSpec) -> Access:
        """The kubeconfig of the platform's Secret, its server put right for people outside."""
        path = path_of("v1", "secrets", self._host_namespace(spec), f"vc-{spec.name}")
        secret = self.kube.get(path)
        text = secret_text(secret, "config") if secret else ""
        if not text:
            raise DriverError(
                f"The platform has not handed out the kubeconfig of {spec.name} yet.",
                code="CLUSTER_NOT_READY",
                hint="Wait until the control plane is available.",
            )
        server = ""
        if self.config.client_endpoint:
            server = self.config.client_endpoint.format(name=spec.name, tenant=spec.tenant)
        return kubeadm.access(text, server, spec.node_endpoint)

    def remove(self, spec: ClusterSpec) -> Progress:
        """The instance first, the attachment after it: the network is undone last."""
        found = self.kube.get(self._path(spec))
        if found is not None and _is_ours(found, spec):
            if not found["metadata"].get("deletionTimestamp"):
                self.kube.delete(self._path(spec), found["metadata"]["uid"])
            left = ", ".join(found["metadata"].get("finalizers") or []) or "its dependents"
            return Progress(
                False, f"The platform removes {spec.name}; it waits for {left}.", wait=1
            )
        space = self._host_namespace(spec)
        left_over = self.kube.get(path_of("v1", "namespaces", name=space)) or {"metadata": {}}
        if found is None and left_over["metadata"].get("deletionTimestamp"):
            return Progress(False, f"Namespace {space} is being removed.", wait=1)
        namespace, name = self._attachment(spec)
        path = path_of("k8s.cni.cncf.io/v1", "network-attachment-definitions", namespace, name)
        attachment = self.kube.get(path)
        if attachment is not None and _is_ours(attachment, spec):
            self.kube.delete(path, attachment["metadata"]["uid"])
            return Progress(False, f"Attachment {name} is being removed.", wait=0.5)
        return Progress(True, f"Nothing of {spec.name} is left on the platform.")

    # Its nodes.

    def join_data(self, spec: ClusterSpec, join: JoinSpec, access: Access) -> JoinData:
        return kubeadm.join_data(access, join, spec.node_endpoint)

    def extend(self, spec: ClusterSpec, claim_uid: str, access: Access) -> None:
        kubeadm.extend(access, claim_uid)

    def revoke(self, spec: ClusterSpec, claim_uid: str, access: Access) -> None:
        kubeadm.revoke(access, claim_uid)

    def nodes(self, spec: ClusterSpec, access: Access) -> list[NodeSeen]:
        return kubeadm.nodes(access)

    def drain(self, spec: ClusterSpec, node_name: str, access: Access) -> Progress:
        return kubeadm.drain(access, node_name)

    # Names.

    def _path(self, spec: ClusterSpec, collection: bool = False) -> str:
        name = "" if collection else spec.name
        return path_of(API, "virtualclusterinstances", spec.namespace, name)

    def _host_namespace(self, spec: ClusterSpec) -> str:
        return self.config.host_namespace.format(tenant=spec.tenant, name=spec.name)

    def _attachment(self, spec: ClusterSpec) -> tuple[str, str]:
        """Namespace and name of the attachment: the one the values name, else one of our own."""
        plane = spec.values.get("controlPlane") or {}
        notes = ((plane.get("statefulSet") or {}).get("pods") or {}).get("annotations") or {}
        first = str(notes.get(NETWORKS, "")).split(",")[0].partition("@")[0].strip()
        namespace, _, name = first.rpartition("/")
        return namespace or spec.namespace, name or f"{self._bridge(spec)}-vcluster-{spec.name}"

    def _bridge(self, spec: ClusterSpec) -> str:
        return str(spec.segment.get("host_bridge") or self.config.bridge)

    def _refuse_foreign(self, found: Obj, spec: ClusterSpec, what: str) -> None:
        if not _is_ours(found, spec):
            raise DriverError(
                f"There is a {what} already, and it is not this cluster's.",
                code="CONTROL_PLANE_FAILED",
                permanent=True,
                hint="Choose another name, or remove that object first.",
            )


def _labels(spec: ClusterSpec) -> dict[str, str]:
    return {"app.kubernetes.io/managed-by": "gpucloud", OWNER: spec.uid}


def _is_ours(found: Obj, spec: ClusterSpec) -> bool:
    return (found["metadata"].get("labels") or {}).get(OWNER) == spec.uid


def _attachment_config(spec: ClusterSpec, bridge: str, untagged: str) -> str:
    """CNI configuration: the VLAN on a bridge, unless the bridge is that VLAN as a whole."""
    vlan = int(spec.segment["vlan"])
    whole = f"{bridge}={vlan}" in {one.strip() for one in untagged.split(",")}
    lines = [
        '"cniVersion": "0.3.1"',
        '"type": "bridge"',
        f'"bridge": "{bridge}"',
        *([] if whole else [f'"vlan": {vlan}']),
        '"isDefaultGateway": false',
        '"ipam": {}',
    ]
    return "{ " + ", ".join(lines) + " }"


def _same(one: str, other: str) -> bool:
    try:
        return bool(yaml.safe_load(one) == yaml.safe_load(other))
    except yaml.YAMLError:
        return False
