"""What lab-kube gives its controllers: the clusters, the rack, the speed and the act log.

A controller is a module with `async def run(context: Context) -> None` that works until it is
cancelled; `__main__` starts it again after an error. Write through `context.client(manager)` (host
cluster) or `context.client(manager, name)` (a tenant cluster that was started).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpucloud.lab.acts import ActLog
from gpucloud.lab.kube.client import Client
from gpucloud.lab.kube.clusters import HOST, Clusters, Running


@dataclass
class Context:
    """The world of one lab-kube process."""

    data: Path  # $GPUCLOUD_DATA
    speed: float
    rack: dict[str, Any]
    doors: dict[str, str]
    acts: ActLog  # lab/acts/kube.jsonl
    clusters: Clusters = field(repr=False)

    @property
    def lab(self) -> Path:
        return self.data / "lab"

    def client(self, manager: str, cluster: str = HOST) -> Client:
        return Client(self.clusters.running(cluster).cluster, manager)

    async def start_cluster(self, name: str) -> Running:
        """Serve the tenant API of this name; the same port, objects and credentials every time.

        Use a name that is unique in the lab, such as `<namespace>.<instance>`. The answer holds
        `url`, `token`, `ca` (PEM), `client_certificate` and `client_key` (PEM), `kubeconfig()`.
        Clusters that were started are started again after a restart of the process.
        """
        return await self.clusters.start(name)

    async def stop_cluster(self, name: str) -> None:
        """Stop serving it and forget its objects and credentials; its port stays reserved."""
        await self.clusters.stop(name, forget=True)
