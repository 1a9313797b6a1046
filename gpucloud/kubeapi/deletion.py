"""Deleting: preconditions, finalizers, dependents, and namespaces with all they hold."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpucloud.kubeapi import errors
from gpucloud.kubeapi.errors import Obj
from gpucloud.kubeapi.kinds import Resource
from gpucloud.kubeapi.store import Key

if TYPE_CHECKING:
    from gpucloud.kubeapi.cluster import Cluster, Writer

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
FOREGROUND = "foregroundDeletion"
NAMESPACES = "namespaces"


@dataclass(frozen=True)
class Options:
    """DeleteOptions."""

    propagation: str = "Background"  # Background, Foreground, Orphan
    uid: str = ""
    version: str = ""
    dry_run: bool = False


DEFAULT = Options()


def options(said: Obj, how: str = "", dry_run: bool = False) -> Options:
    """From a DeleteOptions body; `how` is what the address says of propagation."""
    wanted = said.get("preconditions") or {}
    dry = said.get("dryRun") or []
    if not isinstance(wanted, dict) or not isinstance(dry, list):
        raise errors.bad_request("preconditions must be an object, dryRun a list")
    if said.get("orphanDependents"):
        how = how or "Orphan"
    how = how or said.get("propagationPolicy") or "Background"
    if how not in ("Background", "Foreground", "Orphan"):
        raise errors.bad_request(f"propagationPolicy: Unsupported value: {how!r}")
    return Options(
        propagation=how,
        uid=str(wanted.get("uid") or ""),
        version=str(wanted.get("resourceVersion") or ""),
        dry_run=dry_run or "All" in dry,
    )


def check_namespace(cluster: Cluster, resource: Resource, namespace: str, name: str) -> None:
    """Objects are born only in a namespace that is there and stays."""
    if not resource.namespaced:
        return
    found = cluster.store.get(Key(NAMESPACES, "", namespace))
    if found is None:
        raise errors.not_found(NAMESPACES, namespace)
    if found["metadata"].get("deletionTimestamp"):
        why = (
            f"unable to create new content in namespace {namespace} because it is being terminated"
        )
        raise errors.forbidden(resource.id, name, why)


def check_finalizers(resource: Resource, old: Obj, new: Obj) -> None:
    if not old["metadata"].get("deletionTimestamp"):
        return
    was = old["metadata"].get("finalizers") or []
    added = [f for f in new["metadata"].get("finalizers") or [] if f not in was]
    if added:
        message = (
            "Forbidden: no new finalizers can be added if the object is being deleted, "
            f"found new finalizers {added}"
        )
        cause = ("FieldValueForbidden", message, "metadata.finalizers")
        raise errors.invalid(resource.kind_id, old["metadata"]["name"], [cause])


def is_due(obj: Obj) -> bool:
    """Deleted by somebody, and nobody asks to wait any more."""
    meta = obj["metadata"]
    if obj["kind"] in ("Namespace", "CustomResourceDefinition"):
        return False  # they also wait for what they hold: settle() decides
    return bool(meta.get("deletionTimestamp")) and not meta.get("finalizers")


def delete(
    cluster: Cluster, resource: Resource, namespace: str, name: str, writer: Writer,
    options: Options,
) -> tuple[Obj, bool]:  # fmt: skip
    old = cluster.get(resource, namespace, name)
    _check_preconditions(resource, old, options)
    key = Key(resource.id, namespace, name)
    new = copy.deepcopy(old)
    meta = new["metadata"]
    if options.propagation == "Orphan" and not options.dry_run:
        _orphan(cluster, meta["uid"], writer)
    if options.propagation == "Foreground" and FOREGROUND not in (meta.get("finalizers") or []):
        meta["finalizers"] = [*(meta.get("finalizers") or []), FOREGROUND]
    if not meta.get("finalizers") and resource.id not in (NAMESPACES, CRDS):
        return cluster.remove(key, new, writer, "delete", options.dry_run), True
    if not meta.get("deletionTimestamp"):
        _stamp(resource, new)
    if new != old:
        new = cluster.mark(key, new, writer, "delete", options.dry_run)
    if not options.dry_run:
        _begin(cluster, key, new, writer)
    left = cluster.store.get(key)
    return (left or new), left is None


def _check_preconditions(resource: Resource, old: Obj, options: Options) -> None:
    meta = old["metadata"]
    for label, wanted, held in (
        ("UID", options.uid, meta["uid"]),
        ("ResourceVersion", options.version, meta["resourceVersion"]),
    ):
        if wanted and wanted != held:
            why = (
                f"the {label} in the precondition ({wanted}) does not match the {label} in record "
                f"({held}). The object might have been deleted and then recreated"
            )
            raise errors.conflict(resource.id, meta["name"], why)


def _stamp(resource: Resource, new: Obj) -> None:
    from gpucloud.kubeapi.cluster import now

    meta = new["metadata"]
    meta["deletionTimestamp"] = now()
    meta["deletionGracePeriodSeconds"] = 0
    if resource.has_generation:
        meta["generation"] = meta.get("generation", 0) + 1
    if resource.id == NAMESPACES:
        new["status"] = {"phase": "Terminating"}


def _begin(cluster: Cluster, key: Key, obj: Obj, writer: Writer) -> None:
    """Start on what has to go before the object itself."""
    if key.resource == NAMESPACES:
        for resource in list(cluster.registry):
            if resource.namespaced:
                for held in cluster.store.list(resource.id, key.name):
                    _ask(cluster, resource, held, writer)
        _empty(cluster, key.name, writer)
    elif key.resource == CRDS:
        defined = cluster.registry.find(key.name)
        for held in cluster.store.list(key.name):
            _ask(cluster, defined, held, writer)
        _undefine(cluster, key.name, writer)
    elif FOREGROUND in (obj["metadata"].get("finalizers") or []):
        for resource, held in _dependents(cluster, obj["metadata"]["uid"]):
            _ask(cluster, resource, held, writer, "Foreground")
        _foreground(cluster, obj["metadata"]["uid"], writer)


def _ask(
    cluster: Cluster, resource: Resource, obj: Obj, writer: Writer, how: str = "Background"
) -> None:
    meta = obj["metadata"]
    namespace = meta.get("namespace", "")
    if cluster.store.get(Key(resource.id, namespace, meta["name"])) is not None:
        delete(cluster, resource, namespace, meta["name"], writer, Options(how, uid=meta["uid"]))


def after(cluster: Cluster, key: Key, gone: Obj, writer: Writer) -> None:
    """An object is gone: collect its dependents, and let go whoever waited for it."""
    for resource, held in _dependents(cluster, gone["metadata"]["uid"]):
        owners = held["metadata"]["ownerReferences"]
        if not any(_lives(cluster, str(owner.get("uid"))) for owner in owners):
            _ask(cluster, resource, held, writer)
    for owner in gone["metadata"].get("ownerReferences") or []:
        _foreground(cluster, str(owner.get("uid")), writer)
    if key.namespace:
        _empty(cluster, key.namespace, writer)
    if any(r.id == key.resource and r.custom for r in cluster.registry):
        _undefine(cluster, key.resource, writer)


def settle(cluster: Cluster, key: Key, writer: Writer) -> None:
    """A namespace or definition was changed; perhaps it was only waiting for that."""
    if key.resource == NAMESPACES:
        _empty(cluster, key.name, writer)
    elif key.resource == CRDS:
        _undefine(cluster, key.name, writer)


def sweep(cluster: Cluster, writer: Writer) -> None:
    """Finish deletions that a killed process left half-way, and collect what lost its owners."""
    everything = _everything(cluster)
    living = {obj["metadata"]["uid"] for _, obj in everything}
    for resource, obj in everything:
        meta = obj["metadata"]
        key = Key(resource.id, meta.get("namespace", ""), meta["name"])
        if cluster.store.get(key) is not obj:
            continue  # changed by this very sweep
        owners = meta.get("ownerReferences") or []
        if meta.get("deletionTimestamp"):
            _begin(cluster, key, obj, writer)
        elif owners and not any(owner.get("uid") in living for owner in owners):
            _ask(cluster, resource, obj, writer)


def _everything(cluster: Cluster) -> list[tuple[Resource, Obj]]:
    return [(r, obj) for r in cluster.registry for obj in cluster.store.list(r.id)]


def _dependents(cluster: Cluster, uid: str) -> list[tuple[Resource, Obj]]:
    return [
        (resource, obj)
        for resource, obj in _everything(cluster)
        if any(o.get("uid") == uid for o in obj["metadata"].get("ownerReferences") or [])
    ]


def _lives(cluster: Cluster, uid: str) -> bool:
    return any(obj["metadata"]["uid"] == uid for _, obj in _everything(cluster))


def _orphan(cluster: Cluster, uid: str, writer: Writer) -> None:
    for resource, held in _dependents(cluster, uid):
        new = copy.deepcopy(held)
        meta = new["metadata"]
        meta["ownerReferences"] = [o for o in meta["ownerReferences"] if o.get("uid") != uid]
        key = Key(resource.id, meta.get("namespace", ""), meta["name"])
        cluster.mark(key, new, writer, "collect")


def _foreground(cluster: Cluster, uid: str, writer: Writer) -> None:
    """Release an owner that waits for its dependents, once the last of them is gone."""
    if _dependents(cluster, uid):
        return
    for resource, obj in _everything(cluster):
        meta = obj["metadata"]
        if meta["uid"] != uid or FOREGROUND not in (meta.get("finalizers") or []):
            continue
        if not meta.get("deletionTimestamp"):
            continue
        new = copy.deepcopy(obj)
        new["metadata"]["finalizers"].remove(FOREGROUND)
        key = Key(resource.id, meta.get("namespace", ""), meta["name"])
        if is_due(new):
            cluster.remove(key, new, writer, "collect")
        else:
            cluster.mark(key, new, writer, "collect")


def _empty(cluster: Cluster, namespace: str, writer: Writer) -> None:
    """Remove a terminating namespace that holds nothing any more."""
    key = Key(NAMESPACES, "", namespace)
    found = cluster.store.get(key)
    if found is None or not found["metadata"].get("deletionTimestamp"):
        return
    if found["metadata"].get("finalizers"):
        return
    held = (r for r in cluster.registry if r.namespaced and cluster.store.list(r.id, namespace))
    if next(held, None) is None:
        new = copy.deepcopy(found)
        new["spec"] = {}
        cluster.remove(key, new, writer, "collect")


def _undefine(cluster: Cluster, name: str, writer: Writer) -> None:
    """Remove a deleted CustomResourceDefinition whose objects are all gone."""
    key = Key(CRDS, "", name)
    found = cluster.store.get(key)
    if found is None or cluster.store.list(name):
        return
    meta = found["metadata"]
    if meta.get("deletionTimestamp") and not meta.get("finalizers"):
        cluster.remove(key, copy.deepcopy(found), writer, "collect")
