"""One switch's NVUE door: requests, revisions, and errors turned into DriverError."""

from __future__ import annotations

from typing import Any, Protocol
from urllib.parse import quote

import requests

from gpucloud.drivers import DriverError
from gpucloud.wire import AnswerTooLarge, open_session, pinned

Tree = dict[str, Any]
APPLIED = {"applied", "applied_and_saved", "saved"}
REFUSED = {
    "invalid",
    "ays_fail",
    "ays_no",
    "apply_fail",
    "apply_error",
    "verify_fail",
    "ignore_fail_no",
}
AGREED = {"ays": "ays_yes"}


class Settings(Protocol):
    """What a Rest needs of the driver's Config."""

    @property
    def username(self) -> str: ...
    @property
    def password(self) -> str: ...
    @property
    def verify(self) -> bool: ...
    @property
    def ca(self) -> str: ...
    @property
    def certificates(self) -> dict[str, str]: ...
    @property
    def connect_timeout(self) -> float: ...
    @property
    def read_timeout(self) -> float: ...


class Rest:
    """The REST API of one switch."""

    def __init__(self, name: str, url: str, config: Settings) -> None:
        self.name = name
        root = url.rstrip("/").removesuffix("/nvue_v1")
        self.address = f"{root}/nvue_v1"
        self._session = open_session(
            config.connect_timeout,
            config.read_timeout,
            pinned(config.certificates.get(name, ""), name),
            (config.ca or True) if config.verify else False,
        )
        self._session.auth = (config.username, config.password)

    def get(self, path: str, revision: str) -> Tree:
        """A part of a revision's tree; an empty one where nothing is configured."""
        return self._call("GET", path, {"rev": revision}, missing_is_empty=True)

    def begin(self) -> str:
        answer = self._call("POST", "/revision")
        # Newer releases answer a short id, older ones a path; either is the only key.
        return str(next(iter(answer), "")) or self._fail("the switch made no revision")

    def patch(self, revision: str, body: Tree) -> None:
        self._call("PATCH", "/", {"rev": revision}, body)

    def apply(self, revision: str) -> None:
        body = {"state": "apply", "auto-prompt": AGREED}
        self._call("PATCH", f"/revision/{quote(revision, safe='')}", None, body)

    def save(self) -> None:
        self._call("PATCH", "/revision/applied", None, {"state": "save", "auto-prompt": AGREED})

    def revision(self, revision: str) -> tuple[str, str]:
        """(applied | refused | applying | gone, the switch's words about it)."""
        path = f"/revision/{quote(revision, safe='')}"
        answer = self._call("GET", path, missing_is_empty=True)
        if not answer:
            return "gone", ""
        state = str(answer.get("state", ""))
        if state in APPLIED:
            return "applied", ""
        if state in REFUSED:
            return "refused", _issue_words(answer) or state
        # A revision that nobody asked to apply will never be; it is ours, given up in between.
        return ("gone", "") if state == "pending" else ("applying", "")

    def _call(
        self,
        verb: str,
        path: str,
        query: dict[str, str] | None = None,
        body: Tree | None = None,
        missing_is_empty: bool = False,
    ) -> Tree:
        try:
            answer = self._session.request(
                verb, self.address + path, params=query, json=body, allow_redirects=False
            )
        except requests.exceptions.RequestException as error:
            raise self._unreachable(verb, path, error) from error
        if answer.status_code == 404 and missing_is_empty:
            return {}
        if answer.status_code in (401, 403):
            raise DriverError(
                f"{self.name} refused the login as {self._session.auth[0]}.",  # type: ignore[index]
                code="SWITCH_LOGIN",
                permanent=True,
                hint="Correct the fabric's user name and password.",
            )
        found = _json(answer)
        if answer.status_code >= 300 or not isinstance(found, dict):
            detail = found.get("detail") if isinstance(found, dict) else ""
            raise DriverError(
                f"{self.name}: {verb} {path} answered {answer.status_code}. {detail or ''}".strip(),
                code="SWITCH_REFUSED",
                permanent=answer.status_code in (400, 404, 405, 422),
                hint="Read the switch's words, then retry.",
            )
        return found

    def _unreachable(self, verb: str, path: str, error: Exception) -> DriverError:
        if isinstance(error, requests.exceptions.SSLError):
            return DriverError(
                f"{self.name} shows a certificate that is not trusted.",
                code="SWITCH_UNREACHABLE",
                permanent=True,
                hint="Pin the switch's certificate or name its CA, once you know it is right.",
            )
        if isinstance(error, AnswerTooLarge):
            why = "answered with more than 8 MiB"
        elif isinstance(error, requests.exceptions.Timeout):
            why = "answered too late"
        else:
            why = "does not answer"
        return DriverError(
            f"{self.name} {why} ({verb} {path}).",
            code="SWITCH_UNREACHABLE",
            hint="Check the switch and the way to it.",
        )

    def _fail(self, why: str) -> str:
        raise DriverError(f"{self.name}: {why}.", code="SWITCH_REFUSED")


def leaf_of(interface: Any, bridge: str) -> Tree:
    """A port's settings in one bridge domain."""
    for step in ("bridge", "domain", bridge):
        interface = interface.get(step) if isinstance(interface, dict) else None
    return interface if isinstance(interface, dict) else {}


def vlans_of(tree: Tree) -> set[int]:
    """The VLANs of a `vlan` object; its keys may be ranges such as 10-20."""
    found: set[int] = set()
    vlans = tree.get("vlan")
    for key in vlans if isinstance(vlans, dict) else ():
        for part in str(key).split(","):
            first, _, last = part.partition("-")
            if first.isdecimal() and (last or first).isdecimal():
                found |= set(range(int(first), int(last or first) + 1))
    return found


def _issue_words(answer: Tree) -> str:
    transition = answer.get("transition")
    issues = transition.get("issue") if isinstance(transition, dict) else None
    if not isinstance(issues, dict):
        return ""
    known = [one for one in issues.values() if isinstance(one, dict)]
    return " ".join(f"{one.get('message', '')} ({one.get('code', '')})" for one in known)


def _json(answer: requests.Response) -> Any:
    try:
        return answer.json() if answer.content else {}
    except ValueError:
        return None
