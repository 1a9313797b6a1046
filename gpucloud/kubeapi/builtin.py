"""The built-in resources that every cluster here serves, with kubectl's columns."""

from __future__ import annotations

from gpucloud.kubeapi.errors import Obj
from gpucloud.kubeapi.kinds import AGE, NAME, NAME_FIELDS, Column, Resource

_MAP = {"type": "object"}
_MAPS = {"type": "array", "items": _MAP}
_CONTAINER = {"type": "object", "properties": {"env": _MAPS, "ports": _MAPS, "volumeMounts": _MAPS}}
_CONTAINERS = {"type": "array", "items": _CONTAINER}


def _schema(**properties: Obj) -> Obj:
    """What Tables, patches and controllers take for granted; everything else is let through."""
    preserved = {"x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "properties": properties} | preserved


# Types of the fields that code here looks into, so that no object that is stored breaks it.
_PODS = _schema(
    spec=_schema(
        containers=_CONTAINERS, initContainers=_CONTAINERS, ephemeralContainers=_CONTAINERS,
        volumes=_MAPS, imagePullSecrets=_MAPS,
    ),
    status=_schema(conditions=_MAPS, containerStatuses=_MAPS),
)  # fmt: skip
_NODES = _schema(spec=_schema(taints=_MAPS), status=_schema(conditions=_MAPS, addresses=_MAPS))
_PLAIN = _schema(spec=_schema(ports=_MAPS), status=_schema(conditions=_MAPS))
_DATA = _schema(data={"type": "object"}, stringData=_MAP, secrets=_MAPS, imagePullSecrets=_MAPS)
_EVENTS = _schema(involvedObject=_MAP)

_INVOLVED = ("kind", "name", "namespace", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS = NAME_FIELDS | {f"involvedObject.{name}" for name in _INVOLVED} | {"reason", "type"}
_EVENT_FIELDS |= {"source", "reportingComponent"}
_POD_FIELDS = NAME_FIELDS | {"spec.nodeName", "status.phase", "spec.restartPolicy"}
_AUTHZ = "authorization.k8s.io"


def _review(kind: str, group: str = _AUTHZ) -> Resource:
    """A kind that is only asked and never kept; see reviews.py."""
    plural = f"{kind.lower()}s"
    return Resource(group, "v1", kind, plural, namespaced=False, verbs=("create",))


def _workload(kind: str, short: str, *columns: Column) -> Resource:
    return Resource(
        "apps", "v1", kind, f"{kind.lower()}s", short_names=(short,), categories=("all",),
        columns=(NAME, *columns, AGE), has_status=True, has_generation=True, schema=_PLAIN,
    )  # fmt: skip


BUILTIN: tuple[Resource, ...] = (
    Resource(
        "", "v1", "Namespace", "namespaces", schema=_PLAIN, namespaced=False, short_names=("ns",),
        columns=(NAME, Column("Status", ".status.phase"), AGE), has_status=True,
        fields=NAME_FIELDS | {"status.phase"},
    ),
    Resource(
        "", "v1", "Secret", "secrets", schema=_DATA, fields=NAME_FIELDS | {"type"},
        columns=(NAME, Column("Type", ".type"), Column("Data", ".data.*", "count"), AGE),
    ),
    Resource(
        "", "v1", "ConfigMap", "configmaps", schema=_DATA, short_names=("cm",),
        columns=(NAME, Column("Data", ".data.*", "count"), AGE),
    ),
    Resource(
        "", "v1", "Node", "nodes", schema=_NODES,
        namespaced=False, short_names=("no",), has_status=True,
        status_on_create=True, fields=NAME_FIELDS | {"spec.unschedulable"},
        columns=(
            NAME,
            Column("Status", "", "node-status"),
            Column("Roles", "", "node-roles"),
            AGE,
            Column("Version", ".status.nodeInfo.kubeletVersion"),
            Column("Internal-IP", '.status.addresses[?(@.type=="InternalIP")].address', priority=1),
            Column("External-IP", '.status.addresses[?(@.type=="ExternalIP")].address', priority=1),
            Column("OS-Image", ".status.nodeInfo.osImage", priority=1),
            Column("Kernel-Version", ".status.nodeInfo.kernelVersion", priority=1),
            Column("Container-Runtime", ".status.nodeInfo.containerRuntimeVersion", priority=1),
        ),
    ),
    Resource(
        "", "v1", "Pod", "pods", schema=_PODS,
        short_names=("po",), categories=("all",), has_status=True,
        fields=_POD_FIELDS, subresources=("eviction",),
        columns=(
            NAME,
            Column("Ready", "", "pod-ready"),
            Column("Status", ".status.phase"),
            Column("Restarts", ".status.containerStatuses[0].restartCount", "integer"),
            AGE,
            Column("IP", ".status.podIP", priority=1),
            Column("Node", ".spec.nodeName", priority=1),
        ),
    ),
    Resource(
        "", "v1", "Service", "services", schema=_PLAIN, short_names=("svc",), categories=("all",),
        has_status=True,
        columns=(
            NAME,
            Column("Type", ".spec.type"),
            Column("Cluster-IP", ".spec.clusterIP"),
            Column("External-IP", ".status.loadBalancer.ingress[0].ip"),
            Column("Port(s)", ".spec.ports[*].port"),
            AGE,
        ),
    ),
    Resource(
        "", "v1", "Event", "events", schema=_EVENTS, short_names=("ev",), fields=_EVENT_FIELDS,
        columns=(
            Column("Last Seen", ".lastTimestamp", "date"),
            Column("Type", ".type"),
            Column("Reason", ".reason"),
            Column("Object", "", "event-object"),
            Column("Message", ".message"),
        ),
    ),
    Resource(
        "", "v1", "ServiceAccount", "serviceaccounts", schema=_DATA, short_names=("sa",),
        columns=(NAME, Column("Secrets", ".secrets", "count"), AGE),
    ),
    Resource(
        "coordination.k8s.io", "v1", "Lease", "leases", schema=_PLAIN,
        columns=(NAME, Column("Holder", ".spec.holderIdentity"), AGE),
    ),
    _workload("Deployment", "deploy", Column("Ready", ".status.readyReplicas", "integer")),
    _workload("StatefulSet", "sts", Column("Ready", ".status.readyReplicas", "integer")),
    _workload("ReplicaSet", "rs", Column("Ready", ".status.readyReplicas", "integer")),
    _workload("DaemonSet", "ds", Column("Ready", ".status.numberReady", "integer")),
    Resource(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions",
        schema=_PLAIN, namespaced=False, short_names=("crd", "crds"), has_status=True,
        has_generation=True,
        columns=(NAME, Column("Created At", ".metadata.creationTimestamp")),
    ),
    _review("SelfSubjectAccessReview"),
    _review("SelfSubjectRulesReview"),
    _review("SubjectAccessReview"),
    _review("SelfSubjectReview", "authentication.k8s.io"),
)  # fmt: skip
