"""The objects of one Kubernetes API and the rules by which they are read and written."""

from __future__ import annotations

import base64
import copy
import json
import random
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gpucloud.kubeapi import births, checks, deletion, errors, patches, watch
from gpucloud.kubeapi.apply import apply
from gpucloud.kubeapi.errors import Obj
from gpucloud.kubeapi.fields import list_types
from gpucloud.kubeapi.kinds import Registry, Resource, from_crd
from gpucloud.kubeapi.managed import Entry, Ownership
from gpucloud.kubeapi.selectors import Match, fields, labels
from gpucloud.kubeapi.store import Event, Key, Store
from gpucloud.kubeapi.watch import Watched

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, so no words


@dataclass(frozen=True)
class Writer:
    """Who writes: the authenticated user, and the name for managedFields."""

    user: str
    manager: str


@dataclass(frozen=True)
class Write:
    """One committed write, for whoever keeps a log."""

    verb: str  # create, update, patch, apply, delete, collect (garbage)
    subresource: str
    writer: Writer
    event: Event


@dataclass(frozen=True)
class Selection:
    """What a list returns."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_from: str = ""
    version: str = ""
    version_match: str = ""


EVERYTHING = Selection()


@dataclass(frozen=True)
class Patch:
    """A patch body with how to read it."""

    kind: str  # one of the content types in patches
    body: Any
    force: bool = False


Handler = Callable[["Cluster", str, str, Obj, Writer], Obj]


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Cluster:
    """One API. All methods but watch are synchronous and atomic within one event loop.

    Everything returned is read only: copy before changing. `on_write` is called after each
    commit; `handlers` serve other subresources, by (resource id, subresource).
    """

    store: Store
    registry: Registry
    on_write: Callable[[Write], None] | None = None
    handlers: dict[tuple[str, str], Handler] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for crd in self.store.list(CRDS):
            self.registry.add(from_crd(crd))

    # Reading

    def get(self, resource: Resource, namespace: str, name: str) -> Obj:
        found = self.store.get(Key(resource.id, namespace, name))
        if found is None:
            raise errors.not_found(resource.id, name)
        return found

    def list(self, resource: Resource, namespace: str, selection: Selection = EVERYTHING) -> Obj:
        """A list object with resourceVersion, and `continue` when there is more."""
        self._check_version(selection)
        match = self.match(resource, selection.labels, selection.fields)
        items = [obj for obj in self.store.list(resource.id, namespace) if match(obj)]
        version = self.store.revision
        if selection.continue_from:
            version, after = self._read_continue(selection.continue_from)
            items = [obj for obj in items if _place(obj) > after]
        meta: Obj = {"resourceVersion": str(version)}
        if selection.limit and len(items) > selection.limit:
            left = len(items) - selection.limit
            items = items[: selection.limit]
            token = json.dumps({"v": version, "after": _place(items[-1])})
            meta["continue"] = base64.urlsafe_b64encode(token.encode()).decode()
            if not selection.labels and not selection.fields:
                meta["remainingItemCount"] = left
        return {
            "kind": resource.items_kind,
            "apiVersion": resource.api_version,
            "metadata": meta,
            "items": items,
        }

    def match(self, resource: Resource, label_selector: str, field_selector: str) -> Match:
        by_label = labels(label_selector)
        by_field = fields(field_selector, resource.fields)
        return lambda obj: by_label(obj) and by_field(obj)

    def watch(self, wanted: watch.Watch) -> AsyncGenerator[Watched, None]:
        if wanted.since and not wanted.since.isdigit():
            raise errors.bad_request(f"invalid resource version {wanted.since!r}")
        return watch.follow(self.store, wanted)

    def _check_version(self, selection: Selection) -> None:
        if not selection.version or selection.continue_from:
            return
        if not selection.version.isdigit():
            raise errors.bad_request(f"invalid resource version {selection.version!r}")
        asked = int(selection.version)
        if asked > self.store.revision:
            raise errors.too_large_version(asked, self.store.revision)
        # Old states are not kept: an exact past one is answered as a real API does after
        # compaction.
        if selection.version_match == "Exact" and asked != self.store.revision:
            raise errors.expired(asked, self.store.revision)

    def _read_continue(self, token: str) -> tuple[int, tuple[str, str]]:
        try:
            read = json.loads(base64.urlsafe_b64decode(token))
            version, after = int(read["v"]), (str(read["after"][0]), str(read["after"][1]))
        except (ValueError, KeyError, TypeError, IndexError):
            raise errors.bad_request("continue key is not valid") from None
        # Pages after the first show newer objects under the first page's version. A watch from
        # there replays what changed in between; when it no longer could, the list starts anew.
        if version < self.store.oldest:
            raise errors.expired(version, self.store.oldest)
        return version, after

    # Writing

    def create(
        self, resource: Resource, namespace: str, obj: Obj, writer: Writer, dry_run: bool = False
    ) -> Obj:
        new = copy.deepcopy(obj)
        checks.shape(resource, new, namespace)
        meta = new["metadata"]
        if meta.get("resourceVersion"):
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + "".join(random.choices(_SUFFIX, k=5))
        return self._insert(resource, namespace, new, writer, "create", dry_run)

    def _insert(
        self, resource: Resource, namespace: str, new: Obj, writer: Writer, verb: str,
        dry_run: bool, owned: Ownership | None = None,
    ) -> Obj:  # fmt: skip
        meta = new["metadata"]
        for name in (
            "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation",
        ):  # fmt: skip
            meta.pop(name, None)
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now()}
        meta.pop("managedFields", None)
        if resource.has_generation:
            meta["generation"] = 1
        if resource.has_status and not resource.status_on_create:
            new.pop("status", None)
        births.tidy(resource, new)
        births.prepare(resource, new)
        checks.with_defaults(new, resource.schema or {})
        checks.whole(resource, new)
        deletion.check_namespace(self, resource, namespace, str(meta["name"]))
        key = Key(resource.id, namespace, str(meta["name"]))
        if self.store.get(key) is not None:
            raise errors.already_exists(resource.id, key.name)
        owned = owned or Ownership()
        if verb == "create":
            entry = Entry(writer.manager, "Update")
            owned.record_update(entry, None, new, list_types(resource), now())
        owned.write(new, resource.api_version)
        return self._commit("ADDED", key, new, verb, "", writer, dry_run)

    def update(
        self, resource: Resource, namespace: str, name: str, obj: Obj, writer: Writer,
        subresource: str = "", dry_run: bool = False,
    ) -> Obj:  # fmt: skip
        old = self.get(resource, namespace, name)
        new = copy.deepcopy(obj)
        checks.shape(resource, new, namespace, name)
        if not new["metadata"].get("resourceVersion") and resource.custom:
            cause = ("FieldValueInvalid", "Invalid value: 0x0: must be specified for an update",
                     "metadata.resourceVersion")  # fmt: skip
            raise errors.invalid(resource.kind_id, name, [cause])
        return self._replace(resource, old, new, writer, "update", subresource, dry_run)

    def patch(
        self, resource: Resource, namespace: str, name: str, patch: Patch, writer: Writer,
        subresource: str = "", dry_run: bool = False,
    ) -> Obj:  # fmt: skip
        if patch.kind == patches.APPLY:
            return self._apply(resource, namespace, name, patch, writer, subresource, dry_run)
        old = self.get(resource, namespace, name)
        base = copy.deepcopy(old)
        if patch.kind == patches.JSON:
            new = patches.json_patch(base, patch.body)
        elif not isinstance(patch.body, dict):
            raise errors.bad_request("the patch must be an object")
        elif patch.kind == patches.STRATEGIC and not resource.custom:
            new = patches.strategic_patch(base, patch.body, list_types(resource))
        elif patch.kind == patches.MERGE:
            new = patches.merge_patch(base, patch.body)
        else:
            kinds = [patches.JSON, patches.MERGE, patches.APPLY]
            raise errors.unsupported_media_type(kinds)
        new = copy.deepcopy(new)
        checks.shape(resource, new, namespace, name)
        return self._replace(resource, old, new, writer, "patch", subresource, dry_run)

    def _apply(
        self, resource: Resource, namespace: str, name: str, patch: Patch, writer: Writer,
        subresource: str, dry_run: bool,
    ) -> Obj:  # fmt: skip
        intent = copy.deepcopy(patch.body)
        checks.shape(resource, intent, namespace, name)
        if intent["metadata"].get("managedFields"):
            raise errors.bad_request("metadata.managedFields must be nil")
        if resource.has_status and not subresource:
            intent.pop("status", None)
        if subresource:
            meta = {k: intent["metadata"][k] for k in ("name", "namespace", "resourceVersion")
                    if k in intent["metadata"]}  # fmt: skip
            intent = {k: intent[k] for k in ("apiVersion", "kind", "status") if k in intent}
            intent["metadata"] = meta
        entry = Entry(writer.manager, "Apply", subresource)
        types = list_types(resource)
        old = self.store.get(Key(resource.id, namespace, name))
        if old is None:
            if subresource:
                raise errors.not_found(resource.id, name)
            if intent["metadata"].get("resourceVersion"):
                raise errors.conflict(resource.id, name)
            owned = Ownership()
            new = apply({"metadata": {}}, intent, entry, owned, types, patch.force, now())
            return self._insert(resource, namespace, new, writer, "apply", dry_run, owned)
        owned = Ownership.read(old)
        asked = intent["metadata"].get("resourceVersion")
        if asked and asked != old["metadata"]["resourceVersion"]:
            raise errors.conflict(resource.id, name)
        new = apply(copy.deepcopy(old), intent, entry, owned, types, patch.force, now())
        return self._replace(resource, old, new, writer, "apply", subresource, dry_run, owned)

    def _replace(
        self, resource: Resource, old: Obj, new: Obj, writer: Writer, verb: str,
        subresource: str, dry_run: bool, owned: Ownership | None = None,
    ) -> Obj:  # fmt: skip
        """Make `new` the object, as far as this door may change it."""
        name, was = old["metadata"]["name"], old["metadata"]
        meta = new["metadata"]
        if (meta.get("resourceVersion") or was["resourceVersion"]) != was["resourceVersion"]:
            raise errors.conflict(resource.id, name)
        if (meta.get("uid") or was["uid"]) != was["uid"]:
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: "
            raise errors.conflict(resource.id, name, why + was["uid"])
        owned = owned or Ownership.kept(old, meta.get("managedFields"))
        new = self._through_door(resource, old, new, subresource)
        births.tidy(resource, new)
        checks.with_defaults(new, resource.schema or {})
        checks.whole(resource, new)
        deletion.check_finalizers(resource, old, new)
        if resource.has_generation and _spec(old) != _spec(new):
            new["metadata"]["generation"] = was.get("generation", 0) + 1
        if verb != "apply":
            entry = Entry(writer.manager, "Update", subresource)
            owned.record_update(entry, old, new, list_types(resource), now())
        owned.write(new, resource.api_version)
        if new == old:
            return old
        key = Key(resource.id, was.get("namespace", ""), name)
        if deletion.is_due(new):
            return self.remove(key, new, writer, verb, dry_run)
        kept = self._commit("MODIFIED", key, new, verb, subresource, writer, dry_run)
        if not dry_run:
            deletion.settle(self, key, writer)
        return kept

    @staticmethod
    def _through_door(resource: Resource, old: Obj, new: Obj, subresource: str) -> Obj:
        """Either the status alone, or everything but the status; never system metadata."""
        if subresource == "status":
            changed = dict(copy.deepcopy(old))
            if "status" in new:
                changed["status"] = new["status"]
            else:
                changed.pop("status", None)
            return changed
        if resource.has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = copy.deepcopy(old["status"])
        for name in (
            "uid", "creationTimestamp", "generation", "deletionTimestamp", "resourceVersion",
            "deletionGracePeriodSeconds", "selfLink", "managedFields", "generateName",
        ):  # fmt: skip
            new["metadata"].pop(name, None)
            if name in old["metadata"]:
                new["metadata"][name] = copy.deepcopy(old["metadata"][name])
        return new

    # Deleting

    def delete(
        self, resource: Resource, namespace: str, name: str, writer: Writer,
        options: deletion.Options = deletion.DEFAULT,
    ) -> tuple[Obj, bool]:  # fmt: skip
        """The object as it was left, and whether it is gone already."""
        return deletion.delete(self, resource, namespace, name, writer, options)

    def delete_collection(
        self, resource: Resource, namespace: str, selection: Selection, writer: Writer,
        options: deletion.Options = deletion.DEFAULT,
    ) -> Obj:  # fmt: skip
        found = self.list(resource, namespace, selection)
        for obj in found["items"]:
            meta = obj["metadata"]
            self.delete(resource, meta.get("namespace", ""), meta["name"], writer, options)
        return found

    def remove(self, key: Key, obj: Obj, writer: Writer, verb: str, dry_run: bool = False) -> Obj:
        """Forget the object, then whatever hung on it."""
        gone = self._commit("DELETED", key, obj, verb, "", writer, dry_run)
        if not dry_run:
            deletion.after(self, key, gone, writer)
        return gone

    def mark(self, key: Key, obj: Obj, writer: Writer, verb: str, dry_run: bool = False) -> Obj:
        """Keep a changed object of which only system fields differ."""
        return self._commit("MODIFIED", key, obj, verb, "", writer, dry_run)

    def _commit(
        self, type_: str, key: Key, obj: Obj,
        verb: str, subresource: str, writer: Writer, dry_run: bool,
    ) -> Obj:  # fmt: skip
        if dry_run:
            return obj
        event = self.store.commit(type_, key, obj)
        if key.resource == CRDS:
            self._redefine(event)
        if self.on_write:
            self.on_write(Write(verb, subresource, writer, event))
        return event.object

    def _redefine(self, event: Event) -> None:
        spec = event.object["spec"]
        self.registry.remove(spec["group"], spec["names"]["plural"])
        if event.type != "DELETED":
            self.registry.add(from_crd(event.object))


def _place(obj: Obj) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _spec(obj: Obj) -> Obj:
    return {k: v for k, v in obj.items() if k not in ("metadata", "status")}
