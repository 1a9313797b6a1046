"""metadata.managedFields: which manager last wrote which field."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpucloud.kubeapi.errors import Obj
from gpucloud.kubeapi.fields import ListTypes, Path, from_v1, leaves, to_v1


@dataclass(frozen=True)
class Entry:
    """Whose set of fields: one manager, one way of writing, one door."""

    manager: str
    operation: str  # Apply, Update
    subresource: str = ""


@dataclass
class Ownership:
    """All entries of one object, with the time of their last change."""

    sets: dict[Entry, set[Path]] = field(default_factory=dict)
    times: dict[Entry, str] = field(default_factory=dict)

    @classmethod
    def read(cls, obj: Obj) -> Ownership:
        owned = cls()
        for listed in obj["metadata"].get("managedFields") or []:
            names = (listed.get(name) for name in ("manager", "operation", "subresource"))
            entry = Entry(*(str(name or "") for name in names))
            owned.sets[entry] = from_v1(listed.get("fieldsV1"))
            owned.times[entry] = str(listed.get("time") or "")
        return owned

    @classmethod
    def kept(cls, old: Obj, said: Any) -> Ownership:
        """What a writer leaves of it: a list of one empty entry clears, no list changes nothing."""
        if said == [{}]:
            return cls()
        if not said:
            return cls.read(old)
        return cls.read({"metadata": {"managedFields": said}})

    def write(self, obj: Obj, api_version: str) -> None:
        listed: list[dict[str, Any]] = []
        for entry, paths in self.sets.items():
            if not paths:
                continue
            row = {
                "manager": entry.manager,
                "operation": entry.operation,
                "apiVersion": api_version,
                "time": self.times[entry],
                "fieldsType": "FieldsV1",
                "fieldsV1": to_v1(paths),
            }
            listed.append(row | ({"subresource": entry.subresource} if entry.subresource else {}))
        if listed:
            obj["metadata"]["managedFields"] = listed
        else:
            obj["metadata"].pop("managedFields", None)

    def record_update(
        self, by: Entry, old: Obj | None, new: Obj, types: ListTypes, now: str
    ) -> None:
        """Give what changed between the two objects to `by` and take it from the others."""
        before = leaves(old, types) if old else {}
        after = leaves(new, types)
        changed = {p for p, v in after.items() if p not in before or before[p] != v}
        removed = before.keys() - after.keys()
        if not changed and not removed:
            return
        for entry, paths in self.sets.items():
            paths -= removed
            if entry != by:
                paths -= changed
        mine = self.sets.setdefault(by, set())
        mine |= changed
        if changed or by not in self.times:
            self.times[by] = now
