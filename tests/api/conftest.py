"""Clients with tokens, and a small world with one object of each kind in it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from rest_framework.test import APIClient

from tests import make

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: one, cluster: {server: "https://192.168.101.2:8443"}}]
users: [{name: one, user: {token: kube-secret}}]
contexts: [{name: one, context: {cluster: one, user: one}}]
current-context: one
"""


class Client(APIClient):
    """Speaks JSON under /api/v1/ with a person's token."""

    def __init__(self, token: str = "") -> None:
        super().__init__()
        self.default_format = "json"
        if token:
            self.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")

    def request(self, **kwargs):
        path = kwargs["PATH_INFO"]
        kwargs["PATH_INFO"] = path if path.startswith("/api/") else f"/api/v1/{path}"
        return super().request(**kwargs)


@pytest.fixture
def client_of():
    """`client_of(admin)`; `client_of(admin, "read")` has a token of that scope; None has none."""

    def make_client(person=None, *scopes, **fields):
        return Client(make.token(person, scopes, **fields) if person else "")

    return make_client


@pytest.fixture
def world(db):
    """Tenant `default` with cluster `one` and a ready claim in it, and all that is under them."""
    kept = make.cluster("one", state="ready", kubeconfig=KUBECONFIG)
    kept.client_endpoint = "127.0.0.1:9443"
    kept.code = "TENANT_API_UNREACHABLE"
    kept.problem = "https://192.168.101.2 of rack r1 does not answer"
    kept.save()
    pool = make.pool(kept)
    server = make.server("bare-metal-2", "held")
    claim = make.claim(
        "one-abcde",
        "failed",
        cluster=kept,
        pool=pool,
        pool_name="gpu",
        server=server,
        code="BMC_UNREACHABLE",
        problem="https://bmc.example.com does not answer",
        selection={"considered": [{"name": "bare-metal-9"}]},
    )
    operation = make.operation(
        claim,
        at="install",
        state="failed",
        code="BMC_UNREACHABLE",
        problem="https://bmc.example.com does not answer",
    )
    attachment = make.attachment(server, kept.segment, claim_uid=claim.uid)
    free = make.server("bare-metal-9")
    return SimpleNamespace(
        tenant=kept.tenant,
        cluster=kept,
        pool=pool,
        server=server,
        free=free,
        claim=claim,
        operation=operation,
        attachment=attachment,
        segment=kept.segment,
        link=server.interfaces.get().link,
        fabric=kept.segment.fabric,
        provider=claim.node_type.provider,
        node_type=claim.node_type,
        image=claim.image,
        template=kept.template,
    )
