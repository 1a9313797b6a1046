"""Where objects are kept: the Store protocol, its events, and the one in memory."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gpucloud.kubeapi.errors import Obj

WINDOW = 5_000  # events kept for resuming a watch; older ones are 410 Gone


class Key(NamedTuple):
    resource: str  # Resource.id
    namespace: str  # empty for cluster-scoped objects
    name: str


@dataclass(frozen=True)
class Event:
    """One committed write. Objects in it are shared: nobody may change them."""

    revision: int
    type: str  # ADDED, MODIFIED, DELETED
    key: Key
    object: Obj
    previous: Obj | None


class Store(Protocol):
    """Keeps objects under one revision counter. What it hands out is read only."""

    @property
    def revision(self) -> int: ...

    @property
    def oldest(self) -> int:
        """The oldest revision after which every event is still known."""
        ...

    def get(self, key: Key) -> Obj | None: ...

    def list(self, resource: str, namespace: str = "") -> list[Obj]:
        """Sorted by namespace and name; all namespaces when none is given."""
        ...

    def commit(self, type: str, key: Key, obj: Obj) -> Event:
        """Write the next revision into `obj` and keep it (or forget it, when DELETED)."""
        ...

    def events(self, after: int) -> Sequence[Event]: ...

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after each commit until the returned function is called."""
        ...


class MemoryStore:
    """A Store that forgets everything when the process ends."""

    def __init__(self, window: int = WINDOW) -> None:
        self._objects: dict[str, dict[tuple[str, str], Obj]] = {}
        self._window = window
        self._log: deque[Event] = deque()
        self._revision = 0
        self._oldest = 0
        self._wakers: set[Callable[[], None]] = set()

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def oldest(self) -> int:
        return self._oldest

    def get(self, key: Key) -> Obj | None:
        return self._objects.get(key.resource, {}).get((key.namespace, key.name))

    def list(self, resource: str, namespace: str = "") -> list[Obj]:
        held = self._objects.get(resource, {})
        return [held[at] for at in sorted(held) if not namespace or at[0] == namespace]

    def commit(self, type: str, key: Key, obj: Obj) -> Event:
        kept = copy.deepcopy(obj)
        kept["metadata"]["resourceVersion"] = str(self._revision + 1)
        event = Event(self._revision + 1, type, key, kept, self.get(key))
        self._keep(event)
        self._place(event)
        for wake in list(self._wakers):
            wake()
        return event

    def _keep(self, event: Event) -> None:
        """The durable half of a commit; raises when the write cannot be kept."""

    def _place(self, event: Event) -> None:
        held = self._objects.setdefault(event.key.resource, {})
        if event.type == "DELETED":
            held.pop((event.key.namespace, event.key.name), None)
        else:
            held[event.key.namespace, event.key.name] = event.object
        self._revision = event.revision
        self._log.append(event)
        while len(self._log) > self._window:
            self._oldest = self._log.popleft().revision

    def events(self, after: int) -> Sequence[Event]:
        first = bisect_right(self._log, after, key=lambda event: event.revision)
        return [self._log[i] for i in range(first, len(self._log))]

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        self._wakers.add(wake)
        return lambda: self._wakers.discard(wake)
