"""The tenant platform: VirtualClusterInstances become tenant APIs step by step, and vanish."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from typing import Any

import aiohttp

from gpucloud.lab.kube import instance as instances
from gpucloud.lab.kube.client import ApiError, Client, Obj
from gpucloud.lab.kube.context import Context
from gpucloud.lab.kube.follow import follow, place
from gpucloud.lab.kube.instance import FINALIZER, Instance, Refused
from gpucloud.lab.kube.instance_status import Status, stamp

log = logging.getLogger("lab.platform")

MANAGER = "vcluster-platform"
KIND = "VirtualClusterInstance"
HOST_CLUSTER = "loft-cluster"
POLL = 1.0

# Seconds on real hardware, from the seed's timeline: deployed at 2, online at 29, ready at 31.
SPACE, DEPLOY, CONTROL_PLANE, SETTLE, REMOVE = 1.0, 1.0, 27.0, 2.0, 4.0


async def run(context: Context) -> None:
    """Keep every VirtualClusterInstance until cancelled."""
    await Platform(context).run()


async def endpoints(context: Context) -> list[dict[str, Any]]:
    """Return the node endpoints of the tenant APIs that run, each with the VLAN it is in."""
    client = context.client(MANAGER)
    shared = context.rack.get("shared_endpoints") or [{"name": ""}]
    found = []
    for obj in await client.list(KIND):
        if not _is_true(obj, "VirtualClusterOnline") or obj["metadata"].get("deletionTimestamp"):
            continue
        try:
            wish = instances.read(obj)
            running = context.clusters.running(wish.cluster)
        except (Refused, KeyError):
            continue
        vlan, _ = await network(client, wish, context.rack.get("bridges") or {})
        if vlan is None or not wish.endpoint:
            continue
        found.append(
            {
                "cluster": wish.cluster,
                "vip": wish.endpoint,
                "vlan": vlan,
                "shared_endpoint": shared[0]["name"],
                "url": running.url,
            }
        )
    return found


async def network(
    client: Client, wish: Instance, bridges: dict[str, int]
) -> tuple[int | None, str]:
    """Return the VLAN of the pod's first network, or None and why it cannot be plugged in."""
    for name in wish.networks:
        namespace, _, short = name.partition("@")[0].rpartition("/")
        namespace = namespace or wish.namespace
        attachment = await client.find("NetworkAttachmentDefinition", short, namespace)
        if attachment is None:
            return None, (
                f"cannot find a network-attachment-definition ({short}) in namespace ({namespace})"
            )
        vlan = instances.vlan_of(attachment, bridges)
        if vlan is None:
            return None, f"network-attachment-definition {namespace}/{short} names no known bridge"
        return vlan, ""
    return None, ""


class Platform:
    """One task per instance; each look does what is due and says when to look again."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.client = context.client(MANAGER)
        self.tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self.wakes: dict[tuple[str, str], asyncio.Event] = {}

    async def run(self) -> None:
        try:
            async for event in follow(self.client, KIND):
                key = place(event.object)
                if key not in self.tasks or self.tasks[key].done():
                    self.wakes[key] = asyncio.Event()
                    self.tasks[key] = asyncio.create_task(self._keep(*key), name=f"vci {key}")
                self.wakes[key].set()
        finally:
            for task in self.tasks.values():
                task.cancel()

    async def _keep(self, namespace: str, name: str) -> None:
        wake = self.wakes[namespace, name]
        while (obj := await self.client.find(KIND, name, namespace)) is not None:
            wake.clear()
            try:
                delay = await self.reconcile(obj)
            except ApiError as error:
                delay = 0.1 if error.reason in ("Conflict", "NotFound") else POLL
            except Exception:
                log.exception("reconcile of %s/%s failed", namespace, name)
                delay = 5.0
            try:
                await asyncio.wait_for(wake.wait(), max(delay, 0.05))
            except TimeoutError:
                continue

    async def reconcile(self, obj: Obj) -> float:
        """Take one look at one instance; return seconds until the next."""
        meta = obj["metadata"]
        if meta.get("deletionTimestamp"):
            return await self._remove(obj)
        if FINALIZER not in (meta.get("finalizers") or []):
            change = {"finalizers": [*(meta.get("finalizers") or []), FINALIZER]}
            await self._merge(obj, {"metadata": change | _version(obj)})
            return 0.0
        status = Status(obj)
        try:
            wish = instances.read(obj)
            delay = await self._deploy(obj, wish, status)
        except Refused as refused:
            status.set("TemplateResolved", False, refused.reason, str(refused))
            status.phase("Failed", refused.reason, str(refused))
            delay = 60.0
        await self._save(obj, status)
        return delay

    async def _deploy(self, obj: Obj, wish: Instance, status: Status) -> float:
        """Do the first thing that is missing, in the order of the seed's timeline."""
        status.set("TemplateResolved", True)
        reference = (obj.get("spec") or {}).get("clusterRef") or {}
        if not reference.get("cluster") or not reference.get("namespace"):
            filled = {
                "cluster": reference.get("cluster") or HOST_CLUSTER,
                "namespace": wish.namespace,
                "virtualCluster": reference.get("virtualCluster") or wish.name,
            }
            await self._merge(obj, {"spec": {"clusterRef": filled}, "metadata": _version(obj)})
            return 0.0
        status.set("Scheduled", True)
        if wait := status.left("Scheduled", SPACE / self.context.speed):
            return wait
        if not await self._space(wish):
            status.phase("Pending", "SpaceNotReady", f"namespace {wish.namespace} is terminating")
            return POLL
        status.set("SpaceSynced", True)
        status.set("SpaceReady", True)
        if wait := status.left("SpaceReady", DEPLOY / self.context.speed):
            return wait
        await self._release(wish, status)
        return await self._control_plane(wish, status)

    async def _space(self, wish: Instance) -> bool:
        found = await self.client.find("Namespace", wish.namespace)
        if found is None:
            await self.client.create("Namespace", instances.namespace_of(wish))
            return True
        return not found["metadata"].get("deletionTimestamp")

    async def _release(self, wish: Instance, status: Status) -> None:
        """Deploy the chart: service and pod; changed values roll the pod."""
        if await self.client.find("Service", wish.name, wish.namespace) is None:
            await self.client.create("Service", instances.service(wish))
        pod = await self.client.find("Pod", f"{wish.name}-0", wish.namespace)
        notes = (pod["metadata"].get("annotations") or {}) if pod else {}
        if pod and notes.get(instances.VALUES_HASH) != wish.values_hash:
            await self.client.delete("Pod", f"{wish.name}-0", wish.namespace, missing_ok=True)
            self._note(wish, "rolled", notes.get(instances.VALUES_HASH), wish.values_hash)
            status.drop("VirtualClusterOnline", "VirtualClusterReady", "VirtualClusterDeployed")
            pod = None
        if pod is None:
            await self.client.create("Pod", instances.pod(wish))
        if not status.true("VirtualClusterDeployed"):
            self._note(wish, "deployed", None, wish.chart_version)
        status.set("VirtualClusterDeployed", True)
        status.status["deployHash"] = wish.values_hash

    async def _control_plane(self, wish: Instance, status: Status) -> float:
        """Plug the pod in, start its API when its time has come, and believe only its answer."""
        _, trouble = await network(self.client, wish, self.context.rack.get("bridges") or {})
        if trouble:
            status.set("VirtualClusterReady", False, "ControlPlanePodNotReady", trouble)
            status.phase("Pending", "ControlPlanePodNotReady", trouble)
            return POLL
        if not status.true("VirtualClusterOnline"):
            status.phase("Pending", "ControlPlaneStarting", "waiting for the control plane")
            wait = status.left("VirtualClusterDeployed", CONTROL_PLANE / self.context.speed)
            if wait:
                return wait
        running = await self.context.start_cluster(wish.cluster)
        await self._run_pod(wish)
        await self._hand_out(wish, running)
        version = await _answers(running.url, running.token, running.ca)
        if not version:
            status.set("VirtualClusterOnline", False, "NotReachable", "the API does not answer")
            status.phase("Pending", "NotReachable", "the tenant API does not answer")
            return POLL
        status.set("VirtualClusterOnline", True)
        status.status["online"] = True
        if wait := status.left("VirtualClusterOnline", SETTLE / self.context.speed):
            return wait
        if not status.true("VirtualClusterReady"):
            self._note(wish, "ready", None, running.url)
        status.set("VirtualClusterReady", True)
        status.status["kubernetesVersion"] = version
        status.phase("Ready")
        return 30.0

    async def _run_pod(self, wish: Instance) -> None:
        name = f"{wish.name}-0"
        pod = await self.client.get("Pod", name, wish.namespace)
        if (pod.get("status") or {}).get("phase") == "Running":
            return
        now = stamp()
        networks = [{"name": "cbr0", "interface": "eth0", "default": True}]
        networks += [
            {"name": one, "interface": f"net{number}"}
            for number, one in enumerate(wish.networks, start=1)
        ]
        note = {"k8s.v1.cni.cncf.io/network-status": json.dumps(networks)}
        await self.client.merge("Pod", name, {"metadata": {"annotations": note}}, wish.namespace)
        status = {
            "phase": "Running",
            "startTime": now,
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": now}
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {
                    "name": "syncer",
                    "ready": True,
                    "restartCount": 0,
                    "image": pod["spec"]["containers"][0]["image"],
                    "imageID": "",
                    "state": {"running": {"startedAt": now}},
                }
            ],
        }
        await self.client.merge("Pod", name, {"status": status}, wish.namespace, "status")

    async def _hand_out(self, wish: Instance, running: Any) -> None:
        """Keep the Secret with which people and programs reach the tenant API."""
        secret = instances.kubeconfig_secret(
            wish,
            {
                "config": running.kubeconfig(),
                "certificate-authority": running.ca,
                "client-certificate": running.client_certificate,
                "client-key": running.client_key,
                "token": running.token,
            },
        )
        name = secret["metadata"]["name"]
        found = await self.client.find("Secret", name, wish.namespace)
        if found is None:
            await self.client.create("Secret", secret)
        elif found.get("data") != secret["data"]:
            await self.client.merge("Secret", name, {"data": secret["data"]}, wish.namespace)
        tenant = self.context.client(MANAGER, wish.cluster)
        if await tenant.find("ConfigMap", "kubeadm-config", "kube-system") is None:
            text = f"kind: ClusterConfiguration\ncontrolPlaneEndpoint: {wish.endpoint}\n"
            await tenant.create(
                "ConfigMap",
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "kubeadm-config", "namespace": "kube-system"},
                    "data": {"ClusterConfiguration": text},
                },
            )

    async def _remove(self, obj: Obj) -> float:
        """Stop the API, remove what was made for it, and let the instance go when all is gone."""
        meta = obj["metadata"]
        if FINALIZER not in (meta.get("finalizers") or []):
            return POLL
        try:
            wish = instances.read(obj)
        except Refused:
            wish = None
        if wish and not await self._removed(wish):
            return REMOVE / self.context.speed
        kept = [one for one in meta["finalizers"] if one != FINALIZER]
        await self._merge(obj, {"metadata": {"finalizers": kept} | _version(obj)})
        return POLL

    async def _removed(self, wish: Instance) -> bool:
        """Take the next thing down; true when nothing is left."""
        pod = await self.client.find("Pod", f"{wish.name}-0", wish.namespace)
        if pod is not None:
            await self.context.stop_cluster(wish.cluster)
            await self.client.delete("Pod", f"{wish.name}-0", wish.namespace, missing_ok=True)
            self._note(wish, "stopped", None, None)
            return False
        await self.context.stop_cluster(wish.cluster)
        for kind, name in (("Service", wish.name), ("Secret", f"vc-{wish.name}")):
            await self.client.delete(kind, name, wish.namespace, missing_ok=True)
        space = await self.client.find("Namespace", wish.namespace)
        if space is None:
            self._note(wish, "removed", None, None)
            return True
        labels = space["metadata"].get("labels") or {}
        if labels.get("loft.sh/vcluster-instance") != wish.name:
            return True
        if not space["metadata"].get("deletionTimestamp"):
            await self.client.delete("Namespace", wish.namespace, missing_ok=True)
        return False

    async def _merge(self, obj: Obj, body: Obj) -> None:
        namespace, name = place(obj)
        await self.client.merge(KIND, name, body, namespace)

    async def _save(self, obj: Obj, status: Status) -> None:
        namespace, name = place(obj)
        if status.status != (obj.get("status") or {}):
            await self.client.merge(KIND, name, {"status": status.status}, namespace, "status")

    def _note(self, wish: Instance, verb: str, before: Any, after: Any) -> None:
        name = f"{KIND}/{wish.project_namespace}/{wish.name}"
        self.context.acts.write("tenant-platform", name, verb, before, after)


def _is_true(obj: Obj, kind: str) -> bool:
    return Status(obj).true(kind)


def _version(obj: Obj) -> Obj:
    return {"resourceVersion": obj["metadata"]["resourceVersion"]}


async def _answers(url: str, token: str, ca: str) -> str:
    """Ask the tenant API for its version over the wire; empty when it does not answer."""
    trust = ssl.create_default_context(cadata=ca)
    timeout = aiohttp.ClientTimeout(total=5)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as http,
            http.get(
                f"{url}/version", headers={"Authorization": f"Bearer {token}"}, ssl=trust
            ) as answer,
        ):
            return str((await answer.json())["gitVersion"]) if answer.status == 200 else ""
    except (aiohttp.ClientError, TimeoutError, KeyError, ValueError):
        return ""
