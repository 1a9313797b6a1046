"""Builders: one row each, valid on the fake drivers, nothing random.

What a row hangs on (site, fabric, provider, tenant …) is found by name or made, so a test says
only what it is about and calls builders in any order.
"""

from __future__ import annotations

from uuid import NAMESPACE_DNS, uuid5

from django.db.models import F
from django.utils import timezone

from gpucloud import vault
from gpucloud.engine import steps
from gpucloud.models import ApiToken, Step, User
from inventory.models import (
    Bmc,
    Drive,
    Gpu,
    Interface,
    Rack,
    Server,
    SharedEndpoint,
    Site,
    WipeRecord,
)
from network.drivers import PortRef
from network.drivers import PortSeen as FakePort
from network.drivers.fake import FakeFabric, FakeWorld
from network.models import Attachment, Fabric, Link, Segment
from provisioning.models import NodeClaim, NodeProvider, NodeType, Operation, OSImage
from tenants.models import (
    ClusterTemplate,
    ControlPlane,
    Membership,
    NodePool,
    Tenant,
    TenantCluster,
)

PASSWORD = "a long enough password"
CLAIM_STEPS = ("select", "configure", "setup", "install", "stop", "move", "boot", "join", "verify")
RELEASE_STEPS = ("drain", "stop", "return", "deprovision", "wipe", "check")
HELD = ("provisioning", "ready", "failed", "releasing")


def user(name: str, platform: str = "none", **roles: str) -> User:
    """`user("olga", default="owner")` owns tenant default; `platform` is the platform role."""
    made = User.objects.create_user(name, password=PASSWORD, platform_role=platform)
    for tenant_name, role in roles.items():
        Membership.objects.create(tenant=tenant(tenant_name), user=made, role=role)
    return made


def token(owner: User, scopes: tuple[str, ...] = (), **fields) -> str:
    """The clear text of a new API token of this person."""
    return ApiToken.make(owner, f"token of {owner}", scopes=list(scopes), **fields)[1]


def site(name: str = "lab") -> Site:
    return Site.objects.get_or_create(name=name)[0]


def rack(name: str = "r1", at: Site | None = None) -> Rack:
    return Rack.objects.get_or_create(site=at or site(), name=name)[0]


def tenant(name: str = "default", **fields) -> Tenant:
    return Tenant.objects.get_or_create(name=name, defaults=fields)[0]


def fabric(name: str = "lab", **fields) -> Fabric:
    """A fabric with its provisioning (VLAN 10) and quarantine (VLAN 4000) segments on it."""
    defaults = {"site": site(), "driver": "fake", "config": {"name": name}, **fields}
    made, new = Fabric.objects.get_or_create(name=name, defaults=defaults)
    if new:
        for role, vlan, cidr in (("provisioning", 10, "10.10.0.0/22"), ("quarantine", 4000, "")):
            Segment.objects.create(
                fabric=made,
                name=role,
                role=role,
                vlan=vlan,
                cidr=cidr,
                state="applied",
                gateway="10.10.0.1" if cidr else "",
            )
    return made


def segment(name: str = "rack", owner: Tenant | None = None, **fields) -> Segment:
    """A tenant's segment, on the fabric; the lowest free VLAN from 101 unless told."""
    on = fields.pop("fabric", None) or fabric()
    taken = set(on.segments.exclude(state="gone").values_list("vlan", flat=True))
    vlan = fields.pop("vlan", None) or next(n for n in range(101, 4000) if n not in taken)
    third = vlan % 250
    defaults = {
        "tenant": owner or tenant(),
        "state": "applied",
        "cidr": f"192.168.{third}.0/24",
        "gateway": f"192.168.{third}.1",
        "host_bridge": "br0",
        **fields,
    }
    return Segment.objects.create(fabric=on, name=name, vlan=vlan, **defaults)


def shared_endpoint(name: str = "knode-1", on: Fabric | None = None) -> SharedEndpoint:
    made = SharedEndpoint.objects.create(name=name)
    port = Interface.objects.create(
        shared_endpoint=made, name="eth0", mac=f"52:54:00:fe:00:{made.pk:02x}", roles=["tenant"]
    )
    Link.objects.create(interface=port, fabric=on or fabric(), switch="leaf-1", port=f"up{made.pk}")
    return made


def provider(name: str = "fake", **fields) -> NodeProvider:
    return NodeProvider.objects.get_or_create(name=name, defaults={"driver": "fake", **fields})[0]


def image(name: str = "ubuntu", **fields) -> OSImage:
    defaults = {"url": f"https://images.example.com/{name}.qcow2", "checksum": "ab" * 32, **fields}
    return OSImage.objects.get_or_create(name=name, defaults=defaults)[0]


def node_type(name: str = "gpu", of: NodeProvider | None = None, **fields) -> NodeType:
    """Servers labelled role=<name>."""
    defaults = {"selector": {"role": name}, "nic_plan": ["tenant"], "image": image(), **fields}
    made, _ = NodeType.objects.get_or_create(
        provider=of or provider(), name=name, defaults=defaults
    )
    return made


def server(name: str = "", state: str = "available", **fields) -> Server:
    """A server with a fake BMC, two drives and one cabled port parked in provisioning.

    `role` labels it (role=gpu unless told), `gpus` is how many, `drives` the serials, `cabled`
    whether the port has its cable. Available means: through the clean gate, with its record.
    """
    number = Server.objects.count() + 1
    name = name or f"server-{number}"
    role, gpus, cabled = (
        fields.pop("role", "gpu"),
        fields.pop("gpus", 0),
        fields.pop("cabled", True),
    )
    serials = fields.pop("drives", (f"{name}-d1", f"{name}-d2"))
    driver = fields.pop("bmc", "fake")
    defaults = {
        "labels": {"role": role},
        "rack": rack(),
        "slot": number,
        "system_uuid": str(uuid5(NAMESPACE_DNS, name)),
        "vendor": "Fake",
        "model": "F1",
        "serial": f"SN-{name}",
        "power": "off",
        "power_at": timezone.now(),
        "health": "OK",
        "health_at": timezone.now(),
        "provisioning_address": f"10.10.{number // 200}.{10 + number % 200}/22",
        "provisioning_gateway": "10.10.0.1",
        **fields,
    }
    made = Server.objects.create(name=name, **defaults)
    Bmc.objects.create(
        server=made,
        driver=driver,
        config={"name": name} if driver == "fake" else {},
        address=f"https://bmc-{name}.example.com" if driver == "redfish" else "",
    )
    for index, serial in enumerate(serials):
        Drive.objects.create(
            server=made, serial=serial, name=f"nvme{index}", model="D1", capacity_bytes=10**12
        )
    for index in range(gpus):
        Gpu.objects.create(server=made, model="H100", serial=f"{name}-g{index}", slot=f"{index}")
    port = Interface.objects.create(
        server=made,
        name="nic1",
        mac=f"52:54:00:00:{number // 256:02x}:{number % 256:02x}",
        roles=["boot", "tenant"],
    )
    if cabled:
        at = Link.objects.create(
            interface=port, fabric=fabric(), switch="leaf-1", port=f"swp{number}", seen_vlan=10
        )
        park(at)
    if state == "available":
        wipe(made)
    elif state == "held":
        # Clean before it was bound; the claim's tenancy is the next one.
        wipe(made)
        Server.objects.filter(pk=made.pk).update(tenancy=F("tenancy") + 1)
    Server.objects.filter(pk=made.pk).update(state=state)
    made.refresh_from_db()
    return made


def park(link: Link, vlan: int = 10) -> None:
    """The fake switch has this port in a VLAN already, as a rack that was cabled before has."""
    seen = FakePort(PortRef(link.switch, link.port), vlan)
    world = FakeFabric.worlds.setdefault(link.fabric.config.get("name", "fake"), FakeWorld())
    world.vlans.add(vlan)
    world.ports[seen.port] = seen


def wipe(one: Server, **fields) -> WipeRecord:
    """The passing record of the present tenancy; the server's clean_tenancy follows it."""
    serials = sorted(one.drives.values_list("serial", flat=True))
    defaults = {
        "kind": "verified",
        "passed": True,
        "drives": [{"serial": serial, "ok": True, "method": "sanitize"} for serial in serials],
        "drive_serials": serials,
        "actor": "tests",
        **fields,
    }
    made = WipeRecord.objects.create(server=one, tenancy=one.tenancy, **defaults)
    if made.passed:
        Server.objects.filter(pk=one.pk).update(clean_tenancy=F("tenancy"))
    return made


def attachment(one: Server, to: Segment, state: str = "applied", **fields) -> Attachment:
    port = one.interfaces.first()
    defaults = {
        "mode": "access",
        "observed": True,
        "observed_at": timezone.now(),
        "since": timezone.now(),
        **fields,
    }
    return Attachment.objects.create(interface=port, segment=to, state=state, **defaults)


def control_plane(name: str = "fake", **fields) -> ControlPlane:
    return ControlPlane.objects.get_or_create(name=name, defaults={"driver": "fake", **fields})[0]


def template(name: str = "tenant-virtual-cluster", **fields) -> ClusterTemplate:
    defaults = {
        "title": "Tenant Virtual Cluster",
        "chart_version": "0.30.0",
        "control_plane": control_plane(),
        "parameters": [
            {"key": "segment", "label": "Server cluster", "type": "segment", "required": False}
        ],
        "body": {
            "privateNodes": {"enabled": True},
            "controlPlane": {"endpoint": {"$cluster": "endpoint"}},
        },
        **fields,
    }
    version = defaults.pop("version", 1)
    return ClusterTemplate.objects.get_or_create(name=name, version=version, defaults=defaults)[0]


def cluster(
    name: str = "one", owner: Tenant | None = None, state: str = "ready", **fields
) -> TenantCluster:
    """A cluster with a segment of its own; `kubeconfig` is kept in the vault where it belongs."""
    of = owner or tenant()
    kubeconfig = fields.pop("kubeconfig", "")
    if "segment" not in fields:
        fields["segment"] = segment(f"{of.name}-{name}", of)
    made = TenantCluster.objects.create(
        tenant=of, name=name, state=state, **{"template": template(), "asked_by": "owner", **fields}
    )
    if kubeconfig:
        vault.put("cluster", made.uid, "kubeconfig", kubeconfig)
    return made


def pool(of: TenantCluster, name: str = "gpu", **fields) -> NodePool:
    return NodePool.objects.create(
        cluster=of, name=name, **{"node_type": node_type(), "quantity": 1, **fields}
    )


def claim(name: str = "", state: str = "pending", **fields) -> NodeClaim:
    """A claim of cluster `one` for one gpu server; bound to a held one in states that have one."""
    of = (
        fields.pop("cluster", None)
        or TenantCluster.objects.live().filter(name="one", tenant=tenant()).first()
        or cluster()
    )
    wanted = fields.pop("node_type", None) or node_type()
    if state in HELD and "server" not in fields:
        fields["server"] = server(state="held")
    held = fields.get("server")
    return NodeClaim.objects.create(
        name=name or f"{of.name}-{NodeClaim.objects.count() + 1}",
        state=state,
        **{
            "tenant": of.tenant,
            "cluster": of,
            "node_type": wanted,
            "image": wanted.image,
            "asked_by": "owner",
            "tenancy": held.tenancy if held else None,
            "node_name": held.name if held else "",
            **fields,
        },
    )


def operation(
    of: NodeClaim | Server, kind: str = "claim", at: str = "select", state: str = "active", **fields
) -> Operation:
    """An operation whose step `at` is the current one (the failed one when `state` is failed)."""
    held = of.server if isinstance(of, NodeClaim) else of
    bound = of if isinstance(of, NodeClaim) else None
    made = Operation.objects.create(kind=kind, claim=bound, server=held, state=state, **fields)
    names = {"claim": CLAIM_STEPS, "release": RELEASE_STEPS}.get(kind, (kind,))
    at = at if at in names else names[0]
    steps.begin("operation", made.uid, names)
    rows = Step.objects.filter(kind="operation", owner_uid=made.uid)
    reached = names.index(at)
    rows.filter(index__lt=reached).update(
        state="done", current=False, next_try_at=None, ended=timezone.now()
    )
    failed = state == "failed"
    rows.filter(index=reached).update(
        state="failed" if failed else "todo",
        current=not failed,
        next_try_at=None if failed else timezone.now(),
        code=fields.get("code", ""),
        sentence=fields.get("problem", ""),
    )
    return made
