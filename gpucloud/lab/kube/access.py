"""Who may do what at a lab API: administrators, bootstrap tokens, and kubelets on their node."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gpucloud.kubeapi.cluster import Cluster
from gpucloud.kubeapi.door import Attributes, User
from gpucloud.kubeapi.errors import ApiError, Obj, forbidden, unauthorized
from gpucloud.kubeapi.store import Key
from gpucloud.lab.place import read_json, write_json

BOOTSTRAP_TYPE = "bootstrap.kubernetes.io/token"


@dataclass
class Kubelet:
    """A machine that was let in by a bootstrap token; `node` is set by its first registration."""

    bootstrap: str
    node: str = ""


class Access:
    """Authentication and authorisation of one cluster."""

    def __init__(self, cluster: Cluster, name: str, token: str, kubelets: Path) -> None:
        self._cluster = cluster
        self._name = name
        self._token = token
        self._path = kubelets
        known = read_json(kubelets) if kubelets.exists() else {}
        self._kubelets = {digest: Kubelet(**kept) for digest, kept in known.items()}
        self.heard: dict[str, float] = {}  # node → when its kubelet last wrote (monotonic)

    # Authentication

    def user(self, headers: Mapping[str, str], certificate: Mapping[str, Any] | None) -> User:
        """Who asks; 401 for nobody."""
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token:
            return self._by_token(token.strip())
        if certificate and _common_name(certificate) == f"admin@{self._name}":
            return User("admin", ("system:masters",))
        raise unauthorized()

    def _by_token(self, token: str) -> User:
        if hmac.compare_digest(token, self._token):
            return User("admin", ("system:masters",))
        if kubelet := self._kubelets.get(_digest(token)):
            return User(f"system:node:{kubelet.node}", ("system:nodes",), _digest(token))
        if self.bootstrap_id(token):
            name = f"system:bootstrap:{token.partition('.')[0]}"
            return User(name, ("system:bootstrappers",))
        raise unauthorized()

    # The join door

    def bootstrap_id(self, token: str) -> str:
        """The id of a bootstrap token that is known, right and not expired; else empty."""
        ident, _, secret = token.partition(".")
        found = self._cluster.store.get(Key("secrets", "kube-system", f"bootstrap-token-{ident}"))
        if not ident or found is None or found.get("type") != BOOTSTRAP_TYPE:
            return ""
        if found["metadata"].get("deletionTimestamp") or expired(found):
            return ""
        right = hmac.compare_digest(_data(found, "token-secret").encode(), secret.encode())
        return ident if right and _data(found, "token-id") == ident else ""

    def admit_kubelet(self, token: str) -> str:
        """A new kubelet's bearer in exchange for a bootstrap token; 403 when that is refused."""
        ident = self.bootstrap_id(token)
        if not ident:
            raise ApiError(403, "Forbidden", "the bootstrap token is unknown or expired")
        bearer = f"kubelet-{secrets.token_urlsafe(32)}"
        self._kubelets[_digest(bearer)] = Kubelet(ident)
        self._save()
        return bearer

    def _save(self) -> None:
        write_json(self._path, {d: vars(k) for d, k in self._kubelets.items()}, 0o600)

    # Authorisation

    def check(self, user: User, asked: Attributes, body: Obj | None) -> None:
        """403 unless allowed. Administrators may everything."""
        if "system:masters" in user.groups or asked.resource.startswith("selfsubject"):
            return
        allowed = False
        if "system:bootstrappers" in user.groups:
            allowed = _bootstrapper_may(asked)
        elif "system:nodes" in user.groups:
            allowed = self._kubelet_may(self._kubelets[user.key], asked, body)
        if not allowed:
            why = (
                f'User "{user.name}" cannot {asked.verb} resource "{asked.resource}" '
                f'in the namespace "{asked.namespace}"'
            )
            raise forbidden(asked.resource or "path", asked.name, why)

    def _kubelet_may(self, kubelet: Kubelet, asked: Attributes, body: Obj | None) -> bool:
        if asked.verb == "get" and not asked.resource:
            return True  # discovery
        if asked.resource == "nodes":
            return self._node_may(kubelet, asked, body)
        if asked.resource == "leases.coordination.k8s.io":
            name = asked.name or str(((body or {}).get("metadata") or {}).get("name", ""))
            allowed = asked.namespace == "kube-node-lease" and name == kubelet.node
            if allowed and not asked.dry and asked.verb in ("create", "update", "patch"):
                self.heard[kubelet.node] = time.monotonic()
            return allowed
        if asked.resource == "events":
            return asked.verb in ("create", "patch")
        return asked.resource == "pods" and asked.verb in ("get", "list", "watch")

    def _node_may(self, kubelet: Kubelet, asked: Attributes, body: Obj | None) -> bool:
        name = asked.name or str(((body or {}).get("metadata") or {}).get("name", ""))
        if asked.verb == "create" and name and not kubelet.node and not asked.dry:
            kubelet.node = name
            self._save()
        if asked.verb in ("list", "watch"):
            return asked.fields == f"metadata.name={kubelet.node}"
        allowed = name == kubelet.node and asked.verb in ("get", "create", "update", "patch")
        if allowed and not asked.dry and asked.verb != "get":
            self.heard[name] = time.monotonic()
        return allowed


def _bootstrapper_may(asked: Attributes) -> bool:
    if asked.verb != "get":
        return False
    where = (asked.resource, asked.namespace, asked.name)
    return not asked.resource or where == ("configmaps", "kube-public", "cluster-info")


def expired(secret: Obj) -> bool:
    """A bootstrap token's time is over; one that cannot be read is over too."""
    text = _data(secret, "expiration")
    if not text:
        return False
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        return True
    return (until if until.tzinfo else until.replace(tzinfo=UTC)) <= datetime.now(UTC)


def _data(secret: Obj, key: str) -> str:
    return base64.b64decode((secret.get("data") or {}).get(key, "")).decode(errors="replace")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _common_name(certificate: Mapping[str, Any]) -> str:
    for part in certificate.get("subject", ()):
        for name, value in part:
            if name == "commonName":
                return str(value)
    return ""
