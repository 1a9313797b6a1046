"""A VirtualClusterInstance as the platform reads it, and the host-side objects made from it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpucloud.lab.kube.client import Obj

FINALIZER = "loft.sh/cleanup-virtual-cluster"
MANAGED_BY = {"app.kubernetes.io/managed-by": "vcluster-platform"}
NETWORKS = "k8s.v1.cni.cncf.io/networks"
VALUES_HASH = "vcluster.loft.sh/values-hash"
SEMVER = re.compile(r"v?\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?")


class Refused(Exception):
    """The instance cannot be deployed; `reason` is the platform's word for it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Instance:
    """What one VirtualClusterInstance asks for."""

    name: str
    project_namespace: str
    namespace: str
    chart_version: str
    values: dict[str, Any]
    values_hash: str
    endpoint: str
    networks: list[str] = field(default_factory=list)

    @property
    def cluster(self) -> str:
        """The lab's name of the tenant API."""
        return f"{self.project_namespace}.{self.name}"

    @property
    def labels(self) -> dict[str, str]:
        return {**MANAGED_BY, "app": "vcluster", "release": self.name}


def read(obj: Obj) -> Instance:
    """Return the wish of an instance; raise Refused with the platform's reason when it is none."""
    meta, spec = obj["metadata"], obj.get("spec") or {}
    name, project_namespace = meta["name"], meta["namespace"]
    if spec.get("template") and spec.get("templateRef"):
        raise Refused("ErrorModifyingTemplate", "only one of template and templateRef may be set")
    template = spec.get("template")
    if not template:
        wanted = (spec.get("templateRef") or {}).get("name", "")
        raise Refused("TemplateNotFound", f"virtual cluster template {wanted!r} not found")
    release = template.get("helmRelease") or {}
    version = str((release.get("chart") or {}).get("version") or "")
    if not SEMVER.fullmatch(version):
        raise Refused("VersionError", f"chart version {version!r} is not a semantic version")
    text = str(release.get("values") or "")
    values = _values(text)
    reference = spec.get("clusterRef") or {}
    plain = project_namespace.removeprefix("p-")
    return Instance(
        name=name,
        project_namespace=project_namespace,
        namespace=str(reference.get("namespace") or f"loft-{plain}-v-{name}"),
        chart_version=version,
        values=values,
        values_hash=hashlib.sha256(text.encode()).hexdigest()[:16],
        endpoint=str(_at(values, "controlPlane", "endpoint") or ""),
        networks=_networks(values),
    )


def _values(text: str) -> dict[str, Any]:
    try:
        values = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise Refused("ErrorRenderingTemplate", f"values are no YAML: {error}") from error
    if not isinstance(values, dict):
        raise Refused("ErrorRenderingTemplate", "values are no mapping")
    return values


def _networks(values: dict[str, Any]) -> list[str]:
    notes = _at(values, "controlPlane", "statefulSet", "pods", "annotations") or {}
    text = str(notes.get(NETWORKS, "")) if isinstance(notes, dict) else ""
    return [one.strip() for one in text.split(",") if one.strip()]


def _at(values: Any, *path: str) -> Any:
    for name in path:
        values = values.get(name) if isinstance(values, dict) else None
    return values


def vlan_of(attachment: Obj, bridges: dict[str, int]) -> int | None:
    """The VLAN a NetworkAttachmentDefinition leads to: its own, else its bridge's; else None."""
    try:
        config = json.loads((attachment.get("spec") or {}).get("config") or "{}")
    except ValueError:
        return None
    for plugin in [config, *(config.get("plugins") or [])]:
        if plugin.get("vlan"):
            return int(plugin["vlan"])
        if plugin.get("bridge") in bridges:
            return bridges[plugin["bridge"]]
    return None


def namespace_of(instance: Instance) -> Obj:
    labels = {**MANAGED_BY, "loft.sh/vcluster-instance": instance.name}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": instance.namespace, "labels": labels},
    }


def service(instance: Instance) -> Obj:
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 8443}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": instance.name,
            "namespace": instance.namespace,
            "labels": instance.labels,
        },
        "spec": {"type": "ClusterIP", "ports": ports, "selector": instance.labels},
    }


def pod(instance: Instance) -> Obj:
    """The control plane's pod, with the annotations its values ask for."""
    notes = _at(instance.values, "controlPlane", "statefulSet", "pods", "annotations") or {}
    env = _at(instance.values, "controlPlane", "statefulSet", "env") or []
    image = f"ghcr.io/loft-sh/vcluster-pro:{instance.chart_version.removeprefix('v')}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{instance.name}-0",
            "namespace": instance.namespace,
            "labels": {
                **instance.labels,
                "statefulset.kubernetes.io/pod-name": f"{instance.name}-0",
            },
            "annotations": {
                **{key: str(value) for key, value in notes.items()},
                VALUES_HASH: instance.values_hash,
            },
        },
        "spec": {
            "nodeName": "knode-1",
            "containers": [{"name": "syncer", "image": image, "env": env}],
        },
    }


def kubeconfig_secret(instance: Instance, files: dict[str, str]) -> Obj:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in files.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"vc-{instance.name}",
            "namespace": instance.namespace,
            "labels": instance.labels,
        },
        "type": "Opaque",
        "data": data,
    }
