"""Our way into a Kubernetes API, from a kubeconfig: own timeouts, writes never repeated."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
import yaml
from kubernetes import config as kube_config
from kubernetes.client.api_client import ApiClient
from kubernetes.client.configuration import Configuration
from kubernetes.client.exceptions import ApiException

from gpucloud.drivers import DriverError, budget_left, check_budget

Obj = dict[str, Any]

MANAGER = "gpucloud"
CONNECT_SECONDS, READ_SECONDS = 3.05, 10.0
MERGE = "application/merge-patch+json"
# As many clients as connections and tenant clusters are in use at once by one process.
CLIENTS_KEPT = 128


class Kube:
    """Reads and writes of one API; raises DriverError only, `unreachable` when it is silent."""

    def __init__(self, kubeconfig: str, unreachable: str = "KUBE_UNREACHABLE") -> None:
        self.api = _client(kubeconfig)
        self.host = str(self.api.configuration.host)
        self.unreachable = unreachable

    def get(self, path: str) -> Obj | None:
        """The object, None when it is not there."""
        return self._read(path)

    def list(self, path: str, **query: str) -> Iterator[Obj]:
        """Every object of a collection; `query` as labelSelector or fieldSelector."""
        question = {name: value for name, value in query.items() if value}
        found = self._read(f"{path}?{urlencode(question)}" if question else path)
        if found is None:
            raise self._error("GET", path, 404, {"message": "the API does not serve this kind"})
        yield from found.get("items") or []

    def create(self, path: str, body: Obj) -> Obj | None:
        """The object as made; None when one of this name is there already."""
        status, answer = self._write("POST", path, body)
        if status == 409 and answer.get("reason") == "AlreadyExists":
            return None
        return self._checked("POST", path, status, answer)

    def merge(self, path: str, body: Obj) -> Obj:
        """Apply a JSON merge patch; a decision that rests on a read puts resourceVersion in."""
        status, answer = self._write("PATCH", path, body)
        return self._checked("PATCH", path, status, answer)

    def delete(self, path: str, uid: str = "") -> bool:
        """Ask for the deletion, of this very object when its uid is given; False when gone."""
        body: Obj = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        if uid:
            body["preconditions"] = {"uid": uid}
        status, answer = self._write("DELETE", path, body)
        if status == 404:
            return False
        self._checked("DELETE", path, status, answer)
        return True

    def post(self, path: str, body: Obj) -> tuple[int, Obj]:
        """A sub-resource whose refusals mean something, such as an eviction: status and answer."""
        return self._write("POST", path, body)

    def _read(self, path: str) -> Obj | None:
        """GET, once more when the connection failed: a kept-alive one may have been closed."""
        for last in (False, True):
            try:
                status, answer = self._send("GET", path, None)
                break
            except DriverError:
                if last or budget_left() < READ_SECONDS:
                    raise
        if status == 404:
            return None
        return self._checked("GET", path, status, answer)

    def _write(self, method: str, path: str, body: Obj) -> tuple[int, Obj]:
        check_budget(f"{method} {path} at {self.host}")
        separator = "&" if "?" in path else "?"
        managed = path if method == "DELETE" else f"{path}{separator}fieldManager={MANAGER}"
        return self._send(method, managed, body)

    def _send(self, method: str, path: str, body: Obj | None) -> tuple[int, Obj]:
        headers = {"Accept": "application/json", "User-Agent": "gpucloud"}
        headers["Content-Type"] = MERGE if method == "PATCH" else "application/json"
        if token := self.api.configuration.api_key.get("authorization"):
            headers["Authorization"] = token
        wait = max(min(READ_SECONDS, budget_left()), 0.5)
        try:
            answer = self.api.call_api(
                method, self.host + path, headers, body, _request_timeout=(CONNECT_SECONDS, wait)
            )
            text: bytes = answer.read()  # type: ignore[no-untyped-call]
        except (ApiException, urllib3.exceptions.HTTPError, OSError, ssl.SSLError) as error:
            raise DriverError(
                f"The Kubernetes API at {self.host} does not answer: {_brief(error)}.",
                code=self.unreachable,
                hint="Check that the API runs and can be reached from here.",
            ) from error
        return answer.status, _json(text)

    def _checked(self, method: str, path: str, status: int, answer: Obj) -> Obj:
        if status >= 300:
            raise self._error(method, path, status, answer)
        return answer

    def _error(self, method: str, path: str, status: int, answer: Obj) -> DriverError:
        where = f"{method} {path.partition('?')[0]} at {self.host}"
        said = str(answer.get("message") or answer.get("reason") or "no reason given")
        if status in (401, 403):
            return DriverError(f"{where} was refused: {said}.", code="KUBE_DENIED")
        if status == 409:
            return DriverError(
                f"{where} met another writer: {said}", code="KUBE_CONFLICT", wait=0.5
            )
        permanent = status in (400, 404, 405, 415, 422)
        return DriverError(f"{where} was answered with {status}: {said}", "KUBE_ERROR", permanent)


def path_of(
    api_version: str, plural: str, namespace: str = "", name: str = "", sub: str = ""
) -> str:
    """The URL path of a collection, an object or its sub-resource."""
    group = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    parts = [group]
    if namespace:
        parts.append(f"namespaces/{quote(namespace, safe='')}")
    parts.append(plural)
    if name:
        parts.append(quote(name, safe=""))
    if sub:
        parts.append(sub)
    return "/".join(parts)


def secret_data(values: Mapping[str, str]) -> dict[str, str]:
    """Text values as a Secret's data."""
    return {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}


def secret_text(secret: Obj, key: str) -> str:
    """One value of a Secret as text; empty when it is not there."""
    return base64.b64decode((secret.get("data") or {}).get(key, "")).decode(errors="replace")


def server_of(kubeconfig: str) -> str:
    """The API's URL in a kubeconfig, without building a client."""
    return str(_current(_parsed(kubeconfig), "clusters", "cluster").get("server", ""))


@lru_cache(maxsize=CLIENTS_KEPT)
def _client(kubeconfig: str) -> ApiClient:
    """One pool of connections per kubeconfig and process."""
    document = _parsed(kubeconfig)
    made = Configuration()
    cluster, user = _current(document, "clusters", "cluster"), _current(document, "users", "user")
    if user.get("token"):
        # The usual case stays off the disk; the loader below writes temporary files.
        made.host = str(cluster.get("server", "")).rstrip("/")
        made.api_key = {"authorization": f"Bearer {user['token']}"}
        made.verify_ssl = not cluster.get("insecure-skip-tls-verify", False)
        if authority := cluster.get("certificate-authority-data"):
            made.ca_cert_data = base64.b64decode(authority).decode()
    else:
        try:
            kube_config.load_kube_config_from_dict(  # type: ignore[no-untyped-call]
                document, client_configuration=made
            )
        except (kube_config.ConfigException, OSError, ValueError) as error:
            raise _unusable(str(error)) from error
    if not made.host.startswith(("https://", "http://")):
        raise _unusable("it names no server")
    made.retries = False
    made.connection_pool_maxsize = 8
    return ApiClient(made)


def _parsed(kubeconfig: str) -> Obj:
    try:
        document = yaml.safe_load(kubeconfig)
    except yaml.YAMLError as error:
        raise _unusable("it is no YAML") from error
    if not isinstance(document, dict):
        raise _unusable("it is no kubeconfig")
    return document


def _current(document: Obj, plural: str, singular: str) -> Obj:
    """The cluster or user of the current context, else the first one."""
    contexts = {c.get("name"): c.get("context") or {} for c in document.get("contexts") or []}
    wanted = contexts.get(document.get("current-context"), {}).get(singular)
    entries = document.get(plural) or []
    found = next((one for one in entries if one.get("name") == wanted), None)
    chosen = found or (entries[0] if entries else {})
    return dict(chosen.get(singular) or {})


def _unusable(why: str) -> DriverError:
    return DriverError(
        f"The kubeconfig is not usable: {why}.",
        code="DRIVER_CONFIG",
        permanent=True,
        hint="Give the connection a kubeconfig with a server and a token.",
    )


def _json(text: bytes | str | None) -> Obj:
    try:
        read = json.loads(text or b"{}")
    except ValueError:
        return {"message": "the answer is no JSON"}
    return read if isinstance(read, dict) else {"message": "the answer is no JSON object"}


def _brief(error: Exception) -> str:
    """The kind of trouble, without URLs that may hold names or tokens."""
    reason = getattr(error, "reason", None) or error
    words = {
        "NewConnectionError": "the connection was refused",
        "ConnectTimeoutError": "no connection in time",
        "ReadTimeoutError": "no answer in time",
        "ProtocolError": "the connection broke",
        "NameResolutionError": "the name does not resolve",
        "SSLError": "its certificate is not trusted",
    }
    return words.get(type(reason).__name__, words.get(type(error).__name__, type(error).__name__))
