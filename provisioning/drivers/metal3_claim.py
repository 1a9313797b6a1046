"""What a claim puts on its BareMetalHost and beside it: its name, its wishes, its Secrets."""

from __future__ import annotations

import json
from typing import Any

from gpucloud.drivers import DriverError
from inventory.drivers.bmh import Host
from inventory.drivers.kube import Kube, Obj, path_of, secret_data
from provisioning.drivers import NodeSpec, ServerRef

# Which Secret of a claim holds what, by the field of the host's spec that names it.
SECRETS = ("userData", "networkData", "metaData")
CLEAR: Obj = {**dict.fromkeys(SECRETS), "image": None}


def consumer_ref(spec: NodeSpec) -> Obj:
    return {
        "apiVersion": "management.loft.sh/v1",
        "kind": "NodeClaim",
        "name": spec.claim_name,
        "namespace": spec.tenant,
        "uid": spec.claim_uid,
    }


def wish(spec: NodeSpec, namespace: str) -> Obj:
    """The fields of the host's spec by which it is this claim's, whole, with no power wanted."""
    if spec.image is None:
        raise DriverError(
            f"{spec.claim_name} has no OS image.",
            code="IMAGE_UNREACHABLE",
            permanent=True,
            hint="Give the claim or its node type an image.",
        )
    return {
        "consumerRef": consumer_ref(spec),
        "online": False,
        "image": {
            "url": spec.image.url,
            "checksum": spec.image.checksum,
            "checksumType": spec.image.checksum_type,
            "format": spec.image.format,
        },
        **{field: {"name": secret_name(spec, field), "namespace": namespace} for field in SECRETS},
    }


def write_secrets(kube: Kube, namespace: str, spec: NodeSpec) -> None:
    """Secrets come before the patch that names them; their names come from the claim's uid."""
    texts = {
        "userData": spec.user_data,
        "networkData": json.dumps(spec.network_data),
        "metaData": json.dumps(spec.meta_data),
    }
    for field, text in texts.items():
        name = secret_name(spec, field)
        labels = {
            "app.kubernetes.io/managed-by": "gpucloud",
            "gpucloud.dev/claim-uid": spec.claim_uid,
        }
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "labels": labels},
            "type": "Opaque",
            "data": secret_data({field: text}),
        }
        if kube.create(path_of("v1", "secrets", namespace), body) is None:
            kube.merge(path_of("v1", "secrets", namespace, name), {"data": body["data"]})


def drop_secrets(kube: Kube, namespace: str, spec: NodeSpec) -> None:
    for field in SECRETS:
        kube.delete(path_of("v1", "secrets", namespace, secret_name(spec, field)))


def host_name(ref: ServerRef) -> str:
    return ref.engine_id.rpartition("/")[2] or ref.name


def secret_name(spec: NodeSpec, field: str) -> str:
    return f"gpucloud-{spec.claim_uid}-{field.lower()}"


def iso(spec: NodeSpec) -> Obj:
    """Our agent as an image; a merge patch would keep the checksum of the image before."""
    assert spec.media is not None
    return {"url": spec.media.url, "format": "live-iso", "checksum": None, "checksumType": None}


def change_of(host: Host, wanted: Obj) -> Obj:
    """Those of the wanted fields that the host's spec does not have yet; None stands for absent."""
    return {name: value for name, value in wanted.items() if host.spec.get(name) != _kept(value)}


def _kept(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: inner for key, inner in value.items() if inner is not None}


def is_ours(host: Host, spec: NodeSpec) -> bool:
    return str(host.consumer.get("uid", "")) == spec.claim_uid


def consumer(host: Host) -> str:
    ref = host.consumer
    return f"{ref.get('kind', 'something')} {ref.get('namespace', '')}/{ref.get('name', '')}"


def busy(host: Host) -> DriverError:
    owner = consumer(host) if host.consumer else "nobody, so not by this claim"
    return DriverError(
        f"The BareMetalHost {host.name} is used by {owner}.",
        code="HOST_BUSY",
        permanent=True,
        hint="Pick another server.",
    )
