"""What a client may ask about the API itself: groups, resources, version."""

from __future__ import annotations

import re

from gpucloud.kubeapi.errors import Obj, no_such_path
from gpucloud.kubeapi.kinds import Registry, Resource


def core_versions() -> Obj:
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(registry: Registry) -> Obj:
    listed = [_group(name, versions) for name, versions in registry.versions().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(registry: Registry, name: str) -> Obj:
    versions = registry.versions().get(name)
    if not versions:
        raise no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1"} | _group(name, versions)


def _group(name: str, versions: list[str]) -> Obj:
    told = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": told, "preferredVersion": told[0]}


def resources(registry: Registry, group_name: str, version: str) -> Obj:
    found = registry.of_group(group_name, version)
    if not found:
        raise no_such_path()
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].api_version,
        "resources": [row for resource in found for row in _rows(resource)],
    }


def _rows(resource: Resource) -> list[Obj]:
    row: Obj = {
        "name": resource.plural,
        "singularName": resource.singular or resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        row["shortNames"] = list(resource.short_names)
    if resource.categories:
        row["categories"] = list(resource.categories)
    own = {"singularName": "", "namespaced": resource.namespaced, "kind": resource.kind}
    rows = [row]
    if resource.has_status:
        verbs = ["get", "patch", "update"]
        rows.append(own | {"name": f"{resource.plural}/status", "verbs": verbs})
    for name in resource.subresources:
        listed = own | {"name": f"{resource.plural}/{name}", "verbs": ["create"]}
        if name == "eviction":
            listed |= {"group": "policy", "version": "v1", "kind": "Eviction"}
        rows.append(listed)
    return rows


def version(git_version: str) -> Obj:
    numbers = re.match(r"v?(\d+)\.(\d+)", git_version)
    major, minor = numbers.groups() if numbers else ("1", "0")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": git_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }
