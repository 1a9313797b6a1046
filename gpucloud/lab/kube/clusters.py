"""The lab's Kubernetes APIs: the host's and one per tenant cluster, each on its kept port."""

from __future__ import annotations

import asyncio
import base64
import re
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from gpucloud.kubeapi.builtin import BUILTIN
from gpucloud.kubeapi.cluster import Cluster, Write, Writer
from gpucloud.kubeapi.eviction import evict
from gpucloud.kubeapi.kinds import Registry
from gpucloud.kubeapi.sqlite import SqliteStore
from gpucloud.kubeapi.store import Key
from gpucloud.lab.acts import ActLog
from gpucloud.lab.kube.access import Access
from gpucloud.lab.kube.certs import Authority
from gpucloud.lab.kube.server import application
from gpucloud.lab.place import port_of, read_json, write_json
from gpucloud.lab.setup import open_doors

HOST = "host"
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
CRDS = Path(__file__).with_name("crds")
ITSELF = Writer(user="lab", manager="lab")


@dataclass
class Running:
    """One API that serves."""

    name: str
    url: str
    cluster: Cluster
    access: Access
    token: str
    ca: str
    client_certificate: str
    client_key: str
    store: SqliteStore = field(repr=False)
    runner: web.AppRunner = field(repr=False)

    def kubeconfig(self) -> str:
        """An administrator's kubeconfig, as YAML text."""
        authority = base64.b64encode(self.ca.encode()).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": "admin"}}],
            "current-context": self.name,
        }
        return yaml.safe_dump(config, sort_keys=False)


class Clusters:
    """Starts and stops APIs and keeps their files in `lab/kube/clusters/<name>/`."""

    def __init__(self, data: Path, rack: dict[str, Any], acts: ActLog) -> None:
        self._data = data
        self._folder = data / "lab" / "kube"
        self._rack = rack
        self._acts = acts
        self._authority = Authority(self._folder)
        self._running: dict[str, Running] = {}
        self._starting = asyncio.Lock()

    def running(self, name: str) -> Running:
        """KeyError when that cluster does not run."""
        return self._running[name]

    def __iter__(self) -> Any:
        return iter(list(self._running.values()))

    async def start_all(self) -> None:
        """The host, and every tenant cluster that was ever started and not stopped."""
        await self.start(HOST)
        for access in sorted((self._folder / "clusters").glob("*/access.json")):
            await self.start(access.parent.name)

    async def start(self, name: str) -> Running:
        """Running already, or started; two callers get the same one."""
        async with self._starting:
            if name not in self._running:
                self._running[name] = await self._start(name)
            return self._running[name]

    async def _start(self, name: str) -> Running:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name):
            raise ValueError(f"{name!r} cannot name a cluster")
        folder = self._folder / "clusters" / name
        folder.mkdir(parents=True, exist_ok=True)
        kept = self._access(name, folder)
        store = SqliteStore(folder / "objects.sqlite")
        cluster = Cluster(store, Registry(BUILTIN), self._log(name), {("pods", "eviction"): evict})
        self._furnish(cluster, name)
        access = Access(cluster, name, kept["token"], folder / "kubelets.json")
        version = self._rack["kubernetes"]["host_version" if name == HOST else "tenant_version"]
        # Watchers stay connected for ever: they shall not hold up a stop, and one that went away
        # shall be noticed before the next event.
        runner = web.AppRunner(
            application(cluster, access, version), access_log=None, shutdown_timeout=0.2,
            handler_cancellation=True,
        )  # fmt: skip
        await runner.setup()
        context = self._authority.server_context(folder / "server.pem", f"kube-{name}")
        port = port_of(kept["url"])
        site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=context)
        await site.start()
        return Running(
            name, kept["url"], cluster, access, kept["token"], self._authority.pem,
            kept["client_certificate"], kept["client_key"], store, runner,
        )  # fmt: skip

    async def stop(self, name: str, forget: bool) -> None:
        running = self._running.pop(name, None)
        if running:
            await running.runner.cleanup()
            running.store.close()
        if forget and name != HOST:
            shutil.rmtree(self._folder / "clusters" / name, ignore_errors=True)

    async def stop_all(self) -> None:
        for name in list(self._running):
            await self.stop(name, forget=False)

    def _access(self, name: str, folder: Path) -> dict[str, str]:
        """URL and credentials, made at the first start."""
        path = folder / "access.json"
        if path.exists():
            known: dict[str, str] = read_json(path)
            return known
        door = "kube" if name == HOST else f"kube-{name}"
        url = open_doors(self._data, {door: "https"})[door]
        certificate, key = self._authority.client_pair(f"admin@{name}")
        token = self._host_token() if name == HOST else secrets.token_urlsafe(32)
        made = {
            "url": url,
            "token": token,
            "client_certificate": certificate,
            "client_key": key,
        }
        write_json(path, made, 0o600)
        return made

    def _host_token(self) -> str:
        config = yaml.safe_load((self._folder / "kubeconfig").read_text())
        return str(config["users"][0]["user"]["token"])

    def _furnish(self, cluster: Cluster, name: str) -> None:
        """The namespaces and definitions that a cluster has from the start."""
        wanted: tuple[str, ...] = NAMESPACES
        if name == HOST:
            wanted += ("p-default", "p-tenant1", "p-tenant2")
            for path in sorted(CRDS.glob("*.yaml")):
                crd = yaml.safe_load(path.read_text())
                kind = cluster.registry.find("customresourcedefinitions")
                if cluster.store.get(Key(kind.id, "", crd["metadata"]["name"])) is None:
                    cluster.create(kind, "", crd, ITSELF)
        # A namespace that somebody deleted stays deleted: only an empty cluster is furnished.
        if not cluster.store.list("namespaces"):
            for namespace in wanted:
                body = {"metadata": {"name": namespace}}
                cluster.create(cluster.registry.find("namespaces"), "", body, ITSELF)

    def _log(self, name: str) -> Any:
        def write(done: Write) -> None:
            key, event = done.event.key, done.event
            kind = event.object["kind"]
            place = "/".join(part for part in (kind, key.namespace, key.name) if part)
            if name != HOST:
                place = f"{name}:{place}"
            verb = f"{done.verb} {done.subresource}".strip()
            before = _trace(event.previous, done) if event.previous else None
            after = None if event.type == "DELETED" else _trace(event.object, done)
            self._acts.write("api", place, verb, before, after)

        return write


def _trace(obj: dict[str, Any], done: Write) -> dict[str, Any]:
    """What the act log keeps of an object: enough to judge, never a Secret's data."""
    meta = obj["metadata"]
    kept: dict[str, Any] = {"resourceVersion": meta["resourceVersion"]}
    if obj is done.event.object:
        kept["by"] = done.writer.manager
    if obj["kind"] == "BareMetalHost":
        kept |= {name: meta.get(name) or {} for name in ("annotations", "labels")}
    return kept
