"""One session on each BMC, shared by the calls of this process and ended when it is not needed."""

from __future__ import annotations

import atexit
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Never

import sushy  # type: ignore[import-untyped]
from sushy import exceptions

from gpucloud.drivers import DriverError, budget_left, call_budget
from gpucloud.wire import read_certificate
from inventory.drivers.redfish_errors import Json, translated, transport_error
from inventory.drivers.redfish_wire import BmcAuth, BmcConnector, Login

MAX_SESSIONS = 512


class _NoInternet:
    """sushy would fetch message registries from the Internet; a BMC network has none."""

    def get(self, *args: Any, **kwargs: Any) -> Never:
        raise exceptions.ConnectionError(url="registry", error="not fetched")


class Client:
    """One BMC and our one session on it; calls take turns."""

    def __init__(self, login: Login) -> None:
        self.login = login
        self.host = login.address.host
        self.lock = threading.RLock()
        self.certificate = login.certificate
        self._root: sushy.Sushy | None = None
        self._path = ""

    def root(self) -> sushy.Sushy:
        if self._root is None:
            self._root = sushy.Sushy(
                self.login.address.root,
                auth=BmcAuth(self.login),
                connector=BmcConnector(self.login, self._pin()),
                public_connector=_NoInternet(),
            )
        return self._root

    def get(self, path: str) -> Json:
        found: Json = self.root()._conn.get(path).json()
        return found

    def system(self) -> Any:
        """The system the address names; without one the BMC's only real one."""
        self._path = self._path or self.login.address.system or self._only_system()
        return self.root().get_system(self._path)

    def systems(self) -> list[str]:
        members = self.get("/redfish/v1/Systems").get("Members")
        listed = members if isinstance(members, list) else []
        return [str(one["@odata.id"]) for one in listed if isinstance(one, dict)]

    @contextmanager
    def using(self) -> Iterator[None]:
        """One call at a time, with its errors translated."""
        if not self.lock.acquire(timeout=max(min(budget_left(), 60.0), 0.1)):
            raise DriverError(
                f"{self.host} is still busy with an earlier call.",
                code="BMC_TIMEOUT",
                hint="Wait; the earlier call ends by itself.",
            )
        try:
            with translated(self.host):
                yield
        finally:
            self.lock.release()

    def close(self) -> None:
        """End the session at the BMC, quietly: it may be gone."""
        root, self._root = self._root, None
        if root is not None:
            with suppress(Exception), call_budget(min(3.0, budget_left())):
                root._auth.close()
            root._auth = None
            root._conn.close()

    def _pin(self) -> str:
        if not self.certificate and self.login.address.root.startswith("https:"):
            try:
                self.certificate = read_certificate(
                    self.login.address.root, self.login.connect_timeout
                )
            except OSError as error:
                raise transport_error(self.host, "TLS", error) from error
        return self.certificate

    def _only_system(self) -> str:
        # DGX and HGX machines list their GPU baseboard as a system beside the computer.
        found = [path for path in self.systems() if "/HGX" not in path]
        if len(found) != 1:
            raise DriverError(
                f"{self.host} has {len(found)} systems; the address must name one.",
                code="BMC_UNSUPPORTED",
                permanent=True,
                hint="Add the system's path to the BMC's address.",
            )
        return found[0]


_clients: OrderedDict[str, Client] = OrderedDict()
_clients_lock = threading.Lock()


@contextmanager
def connect(login: Login) -> Iterator[Client]:
    """The cached client of this login, for one call at a time; errors come out as DriverError."""
    with _clients_lock:
        client = _clients.setdefault(login.key, Client(login))
        _clients.move_to_end(login.key)
    _close_oldest(client)
    try:
        with client.using():
            yield client
    except DriverError as error:
        if error.code in ("BMC_LOGIN", "BMC_LOCKED", "BMC_CERTIFICATE"):
            forget(login)
        raise


def _close_oldest(spared: Client) -> None:
    """Keep the number of sessions bounded; a client in use is left alone."""
    old: list[Client] = []
    with _clients_lock:
        for key, client in list(_clients.items()):
            if len(_clients) <= MAX_SESSIONS:
                break
            if client is not spared and client.lock.acquire(blocking=False):
                old.append(_clients.pop(key))
    for client in old:
        client.close()
        client.lock.release()


def forget(login: Login) -> None:
    """Drop a client and end its session."""
    with _clients_lock:
        client = _clients.pop(login.key, None)
    if client is not None:
        client.close()


def close_sessions() -> None:
    """End every session this process holds; also done when it exits."""
    with _clients_lock:
        clients = list(_clients.values())
        _clients.clear()
    threads = [threading.Thread(target=client.close, daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4.0)


atexit.register(close_sessions)


def _begin_anew() -> None:
    """A forked child must neither use nor end its parent's sessions, nor wait for its locks."""
    global _clients_lock
    _clients_lock = threading.Lock()
    for client in _clients.values():
        if client._root is not None:
            # sushy ends the session when its root is collected.
            client._root._auth = None
    _clients.clear()


os.register_at_fork(after_in_child=_begin_anew)
