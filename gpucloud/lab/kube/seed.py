"""What the host cluster holds at its first start: the rack's BareMetalHosts and Secrets."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from gpucloud.lab.kube.client import Obj
from gpucloud.lab.kube.context import Context
from gpucloud.lab.place import read_json, write_atomically

NAMESPACE = "default"
DHCP = "metal3.vcluster.com"


async def seed(context: Context) -> None:
    """Register the rack's metal3 servers once; what somebody deletes later stays deleted."""
    done = context.lab / "kube" / "seeded"
    if done.exists():
        return
    logins = read_json(context.lab / "credentials.json")["bmc"]
    client = context.client("kubectl-create")
    for server in context.rack["servers"]:
        if server["kind"] != "metal3":
            continue
        name = server["name"]
        if await client.find("Secret", f"{name}-bmc", NAMESPACE) is None:
            await client.create("Secret", _secret(name, logins[name]), NAMESPACE)
        if await client.find("BareMetalHost", name, NAMESPACE) is None:
            door = context.doors[f"bmc-{name}"]
            host = bare_metal_host(server, context.rack["provisioning"], door)
            await client.create("BareMetalHost", host, NAMESPACE)
    write_atomically(done, "")


def bare_metal_host(server: dict[str, Any], provisioning: dict[str, Any], door: str) -> Obj:
    """The host as an inventory and a GitOps tool left it; their notes are not ours to touch."""
    name = server["name"]
    system = "DGX" if server["vendor"] == "NVIDIA" else "System.Embedded.1"
    boot = next(nic for nic in server["nics"] if "boot" in nic["roles"])
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {**server["labels"], "topology.example.com/rack": server["rack"]},
            "annotations": {
                "inventory.example.com/asset": f"{server['serial']}/{server['slot']}",
                "gitops.example.com/commit": hashlib.sha1(name.encode()).hexdigest(),
                f"{DHCP}/ip-address": server["provisioning_address"],
                f"{DHCP}/gateway": provisioning["gateway"],
                f"{DHCP}/dns-servers": ",".join(provisioning["dns"]),
            },
        },
        "spec": {
            "online": False,
            "bootMACAddress": boot["mac"],
            "bootMode": "UEFI",
            "automatedCleaningMode": "metadata",
            "bmc": {
                "address": f"redfish-virtualmedia+{door}/redfish/v1/Systems/{system}",
                "credentialsName": f"{name}-bmc",
                "disableCertificateVerification": True,
            },
        },
    }


def _secret(server: str, login: dict[str, str]) -> Obj:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in login.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{server}-bmc", "namespace": NAMESPACE},
        "type": "Opaque",
        "data": data,
    }
