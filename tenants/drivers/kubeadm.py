"""Joining and leaving a tenant's Kubernetes API: kubeconfig, bootstrap tokens, nodes, drain."""

from __future__ import annotations

import base64
import hashlib
import secrets
import string
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from gpucloud.drivers import DriverError, Progress
from inventory.drivers.kube import Kube, Obj, path_of, secret_data, secret_text
from tenants.drivers import Access, JoinData, JoinSpec, NodeSeen

ALPHABET = string.ascii_lowercase + string.digits
TOKEN_LIFE = timedelta(hours=1)
CLAIM = "gpucloud.dev/claim-uid"
TOKEN_GROUP = "system:bootstrappers:kubeadm:default-node-token"
DRAINING = "gpucloud.dev/draining-since"
# Evictions are tried for this long; then the node goes, because its server does.
DRAIN_PATIENCE = timedelta(seconds=60)


def tenant_kube(access: Access) -> Kube:
    return Kube(access.kubeconfig, unreachable="TENANT_API_UNREACHABLE")


def access(kubeconfig: str, server: str, node_endpoint: str) -> Access:
    """Return the way in, its server replaced where one is given; the CA is the config's."""
    document = yaml.safe_load(kubeconfig)
    entries = [one["cluster"] for one in document.get("clusters") or [] if one.get("cluster")]
    if not entries:
        raise DriverError(
            "The platform's kubeconfig names no cluster.", "CONTROL_PLANE_FAILED", permanent=True
        )
    if server:
        for entry in entries:
            entry["server"] = server
        kubeconfig = yaml.safe_dump(document, sort_keys=False)
    authority = entries[0].get("certificate-authority-data", "")
    return Access(
        kubeconfig=kubeconfig,
        client_endpoint=str(entries[0].get("server", "")),
        node_endpoint=node_endpoint,
        ca_hash=ca_hash(base64.b64decode(authority)) if authority else "",
    )


def ca_hash(pem: bytes) -> str:
    """The CA's public key as kubeadm's --discovery-token-ca-cert-hash wants it."""
    public = x509.load_pem_x509_certificate(pem).public_key()
    der = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return f"sha256:{hashlib.sha256(der).hexdigest()}"


# Tokens.


def token_id(claim_uid: str) -> str:
    """The claim's own token id, so that it is found again without a memory."""
    number = int.from_bytes(hashlib.sha256(claim_uid.encode()).digest()[:8], "big")
    letters = []
    for _ in range(6):
        number, rest = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[rest])
    return "".join(letters)


def join_data(access: Access, join: JoinSpec, node_endpoint: str) -> JoinData:
    """Make the claim's token or take the one that is there, and return the user data with it."""
    kube, ident = tenant_kube(access), token_id(join.claim_uid)
    expires = datetime.now(UTC) + TOKEN_LIFE
    body = _token(ident, _random(16), join.claim_uid, join.node_name, expires)
    made = kube.create(path_of("v1", "secrets", "kube-system"), body)
    if made is None:
        found = _find(kube, ident, join.claim_uid)
        if found is None:
            raise DriverError(
                "The claim's bootstrap token vanished while it was read.", "KUBE_CONFLICT", wait=0.5
            )
        kube.merge(_path(ident), {"data": secret_data({"expiration": _time(expires)})})
        made = found
    token = f"{ident}.{secret_text(made, 'token-secret')}"
    return JoinData(ident, user_data(join, node_endpoint, token), expires)


def extend(access: Access, claim_uid: str) -> None:
    kube, ident = tenant_kube(access), token_id(claim_uid)
    if _find(kube, ident, claim_uid) is None:
        raise DriverError(
            "The claim's bootstrap token is gone from the tenant's API; its node cannot join.",
            code="KUBE_ERROR",
            hint="Release the claim and ask for another.",
        )
    expires = datetime.now(UTC) + TOKEN_LIFE
    kube.merge(_path(ident), {"data": secret_data({"expiration": _time(expires)})})


def revoke(access: Access, claim_uid: str) -> None:
    kube, ident = tenant_kube(access), token_id(claim_uid)
    found = _find(kube, ident, claim_uid)
    if found is not None:
        kube.delete(_path(ident), found["metadata"]["uid"])


def _find(kube: Kube, ident: str, claim_uid: str) -> Obj | None:
    """The claim's token Secret; one of that id that is somebody else's is never touched."""
    found = kube.get(_path(ident))
    if found is None:
        return None
    if (found["metadata"].get("labels") or {}).get(CLAIM) != claim_uid:
        raise DriverError(
            f"The bootstrap token {ident} in the tenant's API is not this claim's.",
            code="KUBE_ERROR",
            permanent=True,
            hint="Remove that token, then retry.",
        )
    return found


def _token(ident: str, secret: str, claim_uid: str, node: str, expires: datetime) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"bootstrap-token-{ident}",
            "labels": {
                "app.kubernetes.io/managed-by": "gpucloud",
                "vcluster.loft.sh/token": "true",
                "vcluster.loft.sh/token-node-type": "worker",
                CLAIM: claim_uid,
            },
        },
        "type": "bootstrap.kubernetes.io/token",
        "data": secret_data(
            {
                "token-id": ident,
                "token-secret": secret,
                "expiration": _time(expires),
                "usage-bootstrap-authentication": "true",
                "usage-bootstrap-signing": "true",
                "auth-extra-groups": TOKEN_GROUP,
                "description": f"Joins node {node}.",
            }
        ),
    }


def user_data(join: JoinSpec, node_endpoint: str, token: str) -> str:
    """The cloud-config with which a machine becomes this node."""
    arguments = []
    if join.labels:
        pairs = ",".join(f"{key}={value}" for key, value in sorted(join.labels.items()))
        arguments.append(f"--node-labels={pairs}")
    if join.taints:
        taints = ",".join(f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in join.taints)
        arguments.append(f"--register-with-taints={taints}")
    config: dict[str, Any] = {
        "hostname": join.node_name,
        "preserve_hostname": False,
        "write_files": [
            {
                "path": "/etc/default/kubelet",
                "permissions": "0644",
                "content": f'KUBELET_EXTRA_ARGS="{" ".join(arguments)}"\n',
            }
        ],
        "runcmd": [f'curl -fsSLk "https://{node_endpoint}/node/join?token={token}" | sh -'],
    }
    if join.ssh_keys:
        config["ssh_authorized_keys"] = list(join.ssh_keys)
    return "#cloud-config\n" + yaml.safe_dump(config, sort_keys=False, width=4096)


# Nodes.


def nodes(access: Access) -> list[NodeSeen]:
    return [_node(raw) for raw in tenant_kube(access).list(path_of("v1", "nodes"))]


def _node(raw: Obj) -> NodeSeen:
    meta, status = raw["metadata"], raw.get("status") or {}
    info, created = status.get("nodeInfo") or {}, meta.get("creationTimestamp")
    ready = any(
        one.get("type") == "Ready" and one.get("status") == "True"
        for one in status.get("conditions") or []
    )
    return NodeSeen(
        name=str(meta["name"]),
        system_uuid=str(info.get("systemUUID") or "").lower(),
        ready=ready,
        created=datetime.fromisoformat(created) if created else None,
        labels=dict(meta.get("labels") or {}),
        addresses=tuple(
            str(one["address"])
            for one in status.get("addresses") or []
            if one.get("type") == "InternalIP"
        ),
        kubelet=str(info.get("kubeletVersion") or ""),
        allocatable={k: str(v) for k, v in (status.get("allocatable") or {}).items()},
    )


def drain(access: Access, node_name: str) -> Progress:
    """Cordon, evict what can be, then delete the Node; done when it is gone."""
    kube = tenant_kube(access)
    path = path_of("v1", "nodes", name=node_name)
    node = kube.get(path)
    if node is None:
        return Progress(True, f"Node {node_name} is not in the cluster.")
    since = (node["metadata"].get("annotations") or {}).get(DRAINING)
    if not since:
        mark = {"metadata": {"annotations": {DRAINING: _time(datetime.now(UTC))}}}
        kube.merge(path, {**mark, "spec": {"unschedulable": True}})
        return Progress(False, f"Node {node_name} is cordoned.", wait=0.5)
    waiting = [name for name in _evictable(kube, node_name) if not _evict(kube, *name)]
    patient = datetime.now(UTC) - datetime.fromisoformat(since) < DRAIN_PATIENCE
    if waiting and patient:
        names = ", ".join(name for _, name in waiting[:3])
        return Progress(False, f"{len(waiting)} pods are still on {node_name} ({names}).", wait=2)
    kube.delete(path, node["metadata"]["uid"])
    left = f"; {len(waiting)} pods could not be evicted" if waiting else ""
    return Progress(False, f"Node {node_name} is being deleted{left}.", wait=0.5)


def _evictable(kube: Kube, node_name: str) -> Iterator[tuple[str, str]]:
    """The node's pods that an eviction moves: not those of DaemonSets, no static ones."""
    for pod in kube.list(path_of("v1", "pods"), fieldSelector=f"spec.nodeName={node_name}"):
        meta = pod["metadata"]
        owners = {one.get("kind") for one in meta.get("ownerReferences") or []}
        static = "kubernetes.io/config.mirror" in (meta.get("annotations") or {})
        ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if not static and not ended and not owners & {"DaemonSet", "Node"}:
            yield str(meta["namespace"]), str(meta["name"])


def _evict(kube: Kube, namespace: str, name: str) -> bool:
    """Ask for the eviction; true when the pod is gone already."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    status, answer = kube.post(path_of("v1", "pods", namespace, name, "eviction"), body)
    if status in (401, 403):
        said = answer.get("message", "")
        raise DriverError(f"The tenant's API refused an eviction: {said}", "KUBE_DENIED")
    return status == 404


def _path(ident: str) -> str:
    return path_of("v1", "secrets", "kube-system", f"bootstrap-token-{ident}")


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
