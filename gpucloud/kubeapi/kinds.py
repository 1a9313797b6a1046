"""What a cluster serves: resources, their columns, and the registry that finds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gpucloud.kubeapi.errors import Obj

VERBS = (
    "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch",
)  # fmt: skip
NAME_FIELDS = frozenset({"metadata.name", "metadata.namespace"})


@dataclass(frozen=True)
class Column:
    """One printer column of a Table; `path` is a JSONPath without braces."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0
    description: str = ""
    format: str = ""


AGE = Column("Age", ".metadata.creationTimestamp", "date")
NAME = Column("Name", ".metadata.name", format="name")


@dataclass(frozen=True)
class Resource:
    """One kind of object at one group and version."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = (AGE,)
    has_status: bool = False
    status_on_create: bool = False  # Nodes may bring a status at birth; nothing else may
    has_generation: bool = False
    custom: bool = False  # from a CustomResourceDefinition: no strategic merge patch
    fields: frozenset[str] = NAME_FIELDS
    schema: Obj | None = field(default=None, compare=False)
    subresources: tuple[str, ...] = ()  # beside status; served by Cluster.handlers
    verbs: tuple[str, ...] = VERBS
    list_kind: str = ""

    @property
    def id(self) -> str:
        """`plural.group`, as in error messages; plain `plural` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def kind_id(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def items_kind(self) -> str:
        return self.list_kind or f"{self.kind}List"


class Registry:
    """All resources of one cluster; CustomResourceDefinitions come and go at run time."""

    def __init__(self, resources: tuple[Resource, ...] = ()) -> None:
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        for resource in resources:
            self.add(resource)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_path.values())

    def add(self, resource: Resource) -> None:
        self._by_path[resource.group, resource.version, resource.plural] = resource

    def remove(self, group: str, plural: str) -> None:
        gone = [path for path in self._by_path if path[0] == group and path[2] == plural]
        for path in gone:
            del self._by_path[path]

    def at(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_path.get((group, version, plural))

    def find(self, word: str) -> Resource:
        """The resource of an id, plural, kind or short name; KeyError when there is none."""
        for resource in self:
            if word == resource.id:
                return resource
        for resource in self:
            if word in (resource.plural, resource.kind, resource.singular, *resource.short_names):
                return resource
        raise KeyError(word)

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        for resource in self:
            if resource.kind == kind and resource.api_version == api_version:
                return resource
        return None

    def versions(self) -> dict[str, list[str]]:
        """Group → versions; the core group is the empty string."""
        found: dict[str, list[str]] = {}
        for resource in self:
            listed = found.setdefault(resource.group, [])
            if resource.version not in listed:
                listed.append(resource.version)
        return found

    def of_group(self, group: str, version: str) -> list[Resource]:
        return [r for r in self if (r.group, r.version) == (group, version)]


def from_crd(crd: Obj) -> Resource:
    """The resource that a CustomResourceDefinition defines, at its storage version."""
    spec = crd["spec"]
    names = spec["names"]
    served = next(v for v in spec["versions"] if v.get("storage"))
    subresources: Obj = served.get("subresources") or {}
    selectable = {f["jsonPath"].lstrip(".") for f in served.get("selectableFields") or []}
    return Resource(
        group=spec["group"],
        version=served["name"],
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec.get("scope", "Namespaced") == "Namespaced",
        singular=names.get("singular") or names["kind"].lower(),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        columns=tuple(map(_column, served.get("additionalPrinterColumns") or ())) or (AGE,),
        has_status="status" in subresources,
        has_generation=True,
        custom=True,
        fields=NAME_FIELDS | selectable,
        schema=(served.get("schema") or {}).get("openAPIV3Schema"),
        list_kind=names.get("listKind") or "",
    )


def _column(declared: dict[str, Any]) -> Column:
    return Column(
        name=str(declared["name"]),
        path=str(declared["jsonPath"]),
        type=declared.get("type", "string"),
        priority=declared.get("priority", 0),
        description=declared.get("description", ""),
        format=declared.get("format", ""),
    )
