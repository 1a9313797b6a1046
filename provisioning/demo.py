"""The demo's first start: accounts, the seeds' rack, its fabric, providers, types and tenants.

What is missing is made, what is there is left alone: a later start changes nothing.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from gpucloud import vault
from gpucloud.models import ApiToken, User
from inventory.models import Interface, KubernetesConnection, Server, SharedEndpoint, Site
from inventory.services import servers
from network.models import Fabric, Link, Segment
from network.services import segments
from provisioning.models import NodeProvider, NodeType, OSImage
from provisioning.services import inspections
from tenants.models import ClusterTemplate, ControlPlane, Membership, Tenant

ACTOR = "demo"
ACCOUNTS: tuple[tuple[str, str, str], ...] = (
    # username, platform role, tenant that it owns
    ("admin", "admin", ""),
    ("support", "support", ""),
    ("auditor", "auditor", ""),
    ("owner", "none", "default"),
    ("owner1", "none", "tenant1"),
    ("owner2", "none", "tenant2"),
)
TYPES = (
    # provider, type, selector, GPU model, GPU count
    ("metal3", "gpu-server", {"role": "gpu"}, "NVIDIA L40S", 4),
    ("metal3", "cpu-server", {"role": "cpu"}, "", 0),
    ("metal3", "gpu-b", {"role": "gpu-b"}, "NVIDIA L40S", 4),
    ("metal3", "cpu-b", {"role": "cpu-b"}, "", 0),
)
TEMPLATE_BODY: dict[str, Any] = {
    "controlPlane": {
        "backingStore": {"etcd": {"embedded": {"enabled": True}}},
        "endpoint": {"$cluster": "endpoint"},
        "advanced": {
            "kubeVip": {
                "enabled": True,
                "interface": "net1",
                "gateway": {"$cluster": "segment.gateway_cidr"},
            }
        },
        "statefulSet": {
            "pods": {"annotations": {"k8s.v1.cni.cncf.io/networks": {"$cluster": "nad"}}},
            "env": [{"name": "VCLUSTER_NODECLAIM_WAIT_TIMEOUT", "value": "1h"}],
        },
    },
    "privateNodes": {"enabled": True},
}


def seed(data: Path) -> None:
    """Fill an empty database with the demo's world, from what the lab's set-up wrote below `data`.
    """
    lab = data / "lab"
    rack = json.loads((lab / "rack.json").read_text())
    credentials = json.loads((lab / "credentials.json").read_text())
    doors = json.loads((data / "doors.json").read_text())
    with transaction.atomic():
        _tenants()
        _accounts(data)
        site, _ = Site.objects.get_or_create(name=rack["site"])
        connection = _connection(lab)
        fabric = _fabric(site, rack, credentials, doors)
        _segments(fabric, rack)
        _images(rack, doors, lab)
        _providers(connection, doors)
        _template(connection, rack)
    _shared_endpoints(fabric, rack)
    for one in rack["servers"]:
        _server(one, rack, fabric, connection, credentials["bmc"][one["name"]], doors)


def _tenants() -> None:
    for name in ("default", "tenant1", "tenant2"):
        Tenant.objects.get_or_create(name=name)
    Tenant.objects.get_or_create(name="platform", defaults={"builtin": True})


def _accounts(data: Path) -> None:
    password = settings.GPUCLOUD_DEMO_PASSWORD or _kept(
        data / "demo-password", secrets.token_urlsafe(9)
    )
    for username, role, tenant in ACCOUNTS:
        user, made = User.objects.get_or_create(username=username, defaults={"platform_role": role})
        if made or settings.GPUCLOUD_DEMO_PASSWORD and not user.check_password(password):
            user.set_password(password)
            user.save(update_fields=["password"])
        if tenant:
            Membership.objects.get_or_create(
                user=user,
                tenant=Tenant.objects.get(name=tenant),
                defaults={"role": Membership.Role.OWNER},
            )
    clear = _kept(data / "demo-token", ApiToken.PREFIX + secrets.token_urlsafe(32))
    if not ApiToken.objects.filter(digest=ApiToken.digest_of(clear)).exists():
        ApiToken.make(User.objects.get(username="admin"), "demo", clear)


def _kept(path: Path, fresh: str) -> str:
    """The file's content, written once with mode 0600."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(handle, "w") as out:
        out.write(fresh + "\n")
    return fresh


def _connection(lab: Path) -> KubernetesConnection:
    found, _ = KubernetesConnection.objects.get_or_create(
        name="host", defaults={"namespace": "default"}
    )
    vault.put("connection", found.uid, "kubeconfig", (lab / "kube" / "kubeconfig").read_text())
    return found


def _fabric(
    site: Site, rack: dict[str, Any], credentials: dict[str, Any], doors: dict[str, str]
) -> Fabric:
    switches = {one["name"]: doors[f"switch-{one['name']}"] for one in rack["switches"]}
    config = {"switches": switches, "verify": False}
    fabric, made = Fabric.objects.get_or_create(
        name=rack["fabric"],
        defaults={
            "site": site,
            "driver": "nvue",
            "config": config,
            "vlan_first": rack["vlans"]["tenant_first"] + 1,
            "vlan_last": rack["vlans"]["tenant_last"],
        },
    )
    if made:
        login = next(iter(credentials["switch"].values()))
        vault.put("fabric", fabric.uid, "credentials", login)
    return fabric


def _segments(fabric: Fabric, rack: dict[str, Any]) -> None:
    if fabric.segments.exists():
        return
    vlans, home = rack["vlans"], rack["provisioning"]
    segments.create(ACTOR, fabric, "oob", vlan=vlans["oob"], role="oob", cidr="10.20.0.0/22")
    segments.create(
        ACTOR,
        fabric,
        "provisioning",
        vlan=vlans["provisioning"],
        role="provisioning",
        cidr=home["cidr"],
        gateway=home["gateway"],
        dns=home["dns"],
    )
    segments.create(ACTOR, fabric, "quarantine", vlan=vlans["quarantine"], role="quarantine")
    Segment.objects.filter(fabric=fabric, role="quarantine").update(cidr="", gateway="")
    bridge, vlan = next(iter(rack["bridges"].items()))
    segments.create(
        ACTOR,
        fabric,
        "rack",
        vlan=vlan,
        tenant=Tenant.objects.get(name="default"),
        cidr="192.168.100.0/24",
        gateway="192.168.100.1",
        dns=["192.168.100.1"],
        host_bridge=bridge,
    )


def _images(rack: dict[str, Any], doors: dict[str, str], lab: Path) -> None:
    for one in rack["images"]:
        digest = (lab / "images" / f"{one['file']}.sha256").read_text().split()[0]
        OSImage.objects.get_or_create(
            name=one["name"],
            defaults={
                "display_name": one["os"],
                "url": f"{doors['images']}/{one['file']}",
                "checksum": digest,
                "checksum_type": "sha256",
                "format": one["format"],
            },
        )


def _providers(connection: KubernetesConnection, doors: dict[str, str]) -> None:
    provider, _ = NodeProvider.objects.get_or_create(
        name="metal3",
        defaults={"display_name": "Bare metal", "driver": "metal3", "connection": connection},
    )
    image = OSImage.objects.order_by("pk").first()
    for _, name, selector, gpu_model, gpus in TYPES:
        NodeType.objects.get_or_create(
            provider=provider,
            name=name,
            defaults={
                "display_name": name.replace("-", " ").capitalize(),
                "selector": selector,
                "sku": {"gpu_count": gpus, **({"gpu_model": gpu_model} if gpu_model else {})},
                "resources": {"cpu": "64", **({"nvidia.com/gpu": str(gpus)} if gpus else {})},
                "nic_plan": ["tenant"],
                "post_seconds": 300,
                "image": image,
            },
        )


def _template(connection: KubernetesConnection, rack: dict[str, Any]) -> None:
    untagged = ", ".join(f"{bridge}={vlan}" for bridge, vlan in rack["bridges"].items())
    plane, _ = ControlPlane.objects.get_or_create(
        name="platform",
        defaults={
            "driver": "vcluster_platform",
            "connection": connection,
            "config": {"untagged": untagged},
        },
    )
    ClusterTemplate.objects.get_or_create(
        name="tenant-virtual-cluster",
        version=1,
        defaults={
            "title": "Tenant Virtual Cluster",
            "description": "A Kubernetes control plane on the host cluster, on the "
            "tenant's own segment.",
            "chart_version": "0.37.3",
            "control_plane": plane,
            "body": TEMPLATE_BODY,
            "parameters": [
                {
                    "key": "segment",
                    "label": "Netris server cluster",
                    "help": "The network that the cluster's servers are moved onto. "
                    "Blank: the tenant's only "
                    "free one, else a new one.",
                    "type": "segment",
                    "required": False,
                }
            ],
        },
    )


def _cable(interface: Interface, fabric: Fabric, switch: str, port: str) -> None:
    Link.objects.get_or_create(
        interface=interface, defaults={"fabric": fabric, "switch": switch, "port": port}
    )


def _shared_endpoints(fabric: Fabric, rack: dict[str, Any]) -> None:
    for one in rack["shared_endpoints"]:
        endpoint, _ = SharedEndpoint.objects.get_or_create(name=one["name"])
        port, _ = Interface.objects.get_or_create(
            mac=one["mac"],
            defaults={"shared_endpoint": endpoint, "name": "net1", "roles": ["tenant"]},
        )
        _cable(port, fabric, one["switch"], one["port"])


def _server(
    one: dict[str, Any],
    rack: dict[str, Any],
    fabric: Fabric,
    connection: KubernetesConnection,
    login: dict[str, str],
    doors: dict[str, str],
) -> None:
    """Register one server as a person would, cable it, inspect it;

    declared blank when that has ended.
    """
    if Server.objects.filter(name=one["name"]).exists():
        return
    behind_metal3 = one["kind"] == "metal3"
    home = rack["provisioning"]
    server = servers.enroll(
        ACTOR,
        one["name"],
        labels=one["labels"],
        site=rack["site"],
        rack=one["rack"],
        slot=one["slot"],
        connection=connection if behind_metal3 else None,
        engine_id=f"{connection.namespace}/{one['name']}" if behind_metal3 else "",
        interfaces=one["nics"],
        provisioning={
            "address": one["provisioning_address"],
            "gateway": home["gateway"],
            "dns": ",".join(home["dns"]),
        },
        bmc={
            "driver": "metal3" if behind_metal3 else "redfish",
            "address": f"{doors['bmc-' + one['name']]}/redfish/v1",
            **login,
        },
    )
    for nic in one["nics"]:
        _cable(server.interfaces.get(name=nic["name"]), fabric, nic["switch"], nic["port"])
    inspections.start(server, ACTOR, declare_blank=True)
