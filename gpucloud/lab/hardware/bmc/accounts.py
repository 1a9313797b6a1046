"""Who may talk to a BMC: its one account, sessions, and the lock after wrong passwords."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpucloud.lab.hardware.bmc.bmc import Bmc

WRONG_PASSWORDS = 5
LOCK_WALL_SECONDS = 30.0
SESSION_WALL_SECONDS = 1800.0
SESSION_LIMIT = 64


class Refused(Exception):
    """The user name, password or token is not accepted."""


class SessionsExhausted(Exception):
    """So many sessions are open that the BMC takes no more."""


@dataclass
class Session:
    id: str
    token: str
    username: str
    used_at: float = field(default_factory=time.monotonic)


class Accounts:
    """Sessions live in the BMC's RAM: they are lost when the process dies."""

    def __init__(self, bmc: Bmc) -> None:
        self._bmc = bmc
        self._sessions: dict[str, Session] = {}
        self._count = 0
        self._wrong = 0
        self._locked_until = 0.0
        self._basic_seen = False

    @property
    def username(self) -> str:
        return str(self._credentials["username"])

    @property
    def is_locked(self) -> bool:
        return time.monotonic() < self._locked_until

    @property
    def _credentials(self) -> dict[str, str]:
        found: dict[str, str] = self._bmc.world.credentials["bmc"][self._bmc.server.name]
        return found

    def set_password(self, password: str) -> None:
        self._bmc.memory.password = password
        self._bmc.server.save()
        self._sessions.clear()

    def check(self, username: str, password: str) -> None:
        """Raise Refused unless these are right and the account is not locked."""
        known = self._bmc.memory.password or self._credentials["password"]
        same = hmac.compare_digest(username.encode(), self.username.encode())
        same &= hmac.compare_digest(password.encode(), known.encode())
        if self.is_locked or not same:
            if not self.is_locked:
                self._count_wrong()
            self._bmc.act("login", None, {"username": username[:64], "result": "refused"})
            raise Refused
        self._wrong = 0

    def open_session(self, username: str, password: str) -> Session:
        self.check(username, password)
        self._forget_idle()
        if len(self._sessions) >= SESSION_LIMIT:
            raise SessionsExhausted
        self._count += 1
        session = Session(str(self._count), secrets.token_hex(16), username)
        self._sessions[session.id] = session
        self._bmc.act("login", None, {"username": username, "result": "ok"})
        return session

    def close_session(self, identifier: str) -> bool:
        return self._sessions.pop(identifier, None) is not None

    def sessions(self) -> list[Session]:
        self._forget_idle()
        return list(self._sessions.values())

    def authorise(self, token: str, authorization: str) -> None:
        """Raise Refused unless the request carries a live token or the right Basic login."""
        if token:
            self._forget_idle()
            for session in self._sessions.values():
                if hmac.compare_digest(session.token.encode(), token.encode()):
                    session.used_at = time.monotonic()
                    return
            raise Refused
        scheme, _, value = authorization.partition(" ")
        if scheme.lower() != "basic":
            raise Refused
        try:
            login = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, ValueError) as error:
            raise Refused from error
        username, _, password = login.partition(":")
        self.check(username, password)
        if not self._basic_seen:
            # Basic is checked at every request; one line says that it was used.
            self._basic_seen = True
            self._bmc.act("login", None, {"username": username, "result": "ok", "kind": "basic"})

    def _count_wrong(self) -> None:
        self._wrong += 1
        if self._wrong >= WRONG_PASSWORDS:
            self._wrong = 0
            self._locked_until = time.monotonic() + LOCK_WALL_SECONDS
            self._bmc.server.log("The account is locked after wrong passwords", "Warning")

    def _forget_idle(self) -> None:
        oldest = time.monotonic() - SESSION_WALL_SECONDS
        for session in [entry for entry in self._sessions.values() if entry.used_at < oldest]:
            del self._sessions[session.id]
