"""A cluster in memory with one custom kind, and short ways to fill it."""

from __future__ import annotations

import json
from types import SimpleNamespace

from multidict import CIMultiDict

from gpucloud.kubeapi.builtin import BUILTIN
from gpucloud.kubeapi.cluster import Cluster, Patch, Writer
from gpucloud.kubeapi.door import Door, Request, User
from gpucloud.kubeapi.errors import ApiError
from gpucloud.kubeapi.eviction import evict
from gpucloud.kubeapi.kinds import Registry
from gpucloud.kubeapi.patches import APPLY, JSON, MERGE, STRATEGIC
from gpucloud.kubeapi.store import MemoryStore

ANNA, BERT = Writer("anna", "anna"), Writer("bert", "bert")

HOSTS_CRD = {
    "metadata": {"name": "hosts.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Host", "plural": "hosts", "singular": "host", "shortNames": ["ho"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Online", "type": "boolean", "jsonPath": ".spec.online"},
                    {"name": "State", "type": "string", "jsonPath": ".status.state"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["online"],
                                "properties": {
                                    "online": {"type": "boolean"},
                                    "mode": {
                                        "type": "string",
                                        "enum": ["fast", "slow"],
                                        "default": "fast",
                                    },
                                    "taints": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["key"],
                                        "items": {"type": "object"},
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


class World:
    """The cluster, with the default arguments that tests are not about."""

    def __init__(self, store=None):
        self.writes = []
        self.cluster = Cluster(
            store or MemoryStore(), Registry(BUILTIN), self.writes.append,
            {("pods", "eviction"): evict},
        )  # fmt: skip
        if not self.cluster.store.list("namespaces"):
            self.create("namespaces", {"metadata": {"name": "lab"}})
            self.create("customresourcedefinitions", HOSTS_CRD)

    @property
    def version(self):
        return str(self.cluster.store.revision)

    def _at(self, word):
        resource = self.cluster.registry.find(word)
        return resource, "lab" if resource.namespaced else ""

    def create(self, word, obj, by=ANNA, **options):
        return self.cluster.create(*self._at(word), obj, by, **options)

    def host(self, name="h1", spec=None, by=ANNA, **meta):
        obj = {"metadata": {"name": name, **meta}, "spec": {"online": False, **(spec or {})}}
        return self.create("hosts", obj, by)

    def config(self, name="c1", data=None, by=ANNA, **meta):
        return self.create("configmaps", {"metadata": {"name": name, **meta}, "data": data or {}})

    def get(self, word, name):
        return self.cluster.get(*self._at(word), name)

    def has(self, word, name):
        try:
            return bool(self.get(word, name))
        except ApiError:
            return False

    def names(self, word):
        return [obj["metadata"]["name"] for obj in self.cluster.list(*self._at(word))["items"]]

    def update(self, word, obj, by=ANNA, **options):
        return self.cluster.update(*self._at(word), obj["metadata"]["name"], obj, by, **options)

    def merge(self, word, name, body, by=ANNA, kind=MERGE, **options):
        return self.cluster.patch(*self._at(word), name, Patch(kind, body), by, **options)

    def json(self, word, name, body, by=ANNA):
        return self.merge(word, name, body, by, JSON)

    def strategic(self, word, name, body, by=ANNA):
        return self.merge(word, name, body, by, STRATEGIC)

    def apply(self, word, obj, by=ANNA, force=False, **options):
        patch = Patch(APPLY, obj, force)
        return self.cluster.patch(*self._at(word), obj["metadata"]["name"], patch, by, **options)

    def delete(self, word, name, **options):
        from gpucloud.kubeapi.deletion import Options

        return self.cluster.delete(*self._at(word), name, ANNA, Options(**options))


class Web:
    """The door of a world, asked as a client would over HTTP."""

    def __init__(self, world=None, check=None):
        self.world = world or World()
        self._door = Door(self.world.cluster, "v1.36.5", check or (lambda *_: None))

    def __call__(self, method, path, body=None, accept="", kind="application/json", **query):
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        headers = CIMultiDict({"Accept": accept, "Content-Type": kind, "User-Agent": "probe/1.0"})
        request = Request(method, path, query, headers, raw, User("anna", ("system:masters",)))
        response = self._door.answer(request)
        if response.stream is not None:
            return response.stream
        text = response.body.decode()
        read = json.loads(text) if response.content_type == "application/json" else text
        return SimpleNamespace(status=response.status, body=read)
