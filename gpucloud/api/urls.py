"""Routes of the REST API and its schema: objects are addressed as pages do."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path
from drf_spectacular.views import SpectacularAPIView
from rest_framework.renderers import JSONRenderer

from gpucloud.api.shared import ByUid, Events, Me
from gpucloud.api.views import Door, NoSuchAddress
from inventory.api.servers import Servers
from network.api import Attachments, Fabrics, Links, Segments
from provisioning.api.catalog import Images, NodeTypes, Providers
from provisioning.api.claims import Claims, Operations
from tenants.api import Clusters, Templates, Tenants, YamlRenderer


def noun(
    address: str, door: type[Door], key: str, changes: str = "", *verbs: str
) -> list[URLPattern]:
    """The list, the object at `key`, and its verbs; `changes` are of create, change, delete."""
    many: dict[str, Any] = {"get": "list"} | ({"post": "create"} if "create" in changes else {})
    one: dict[str, Any] = {"get": "retrieve"}
    one |= {"patch": "partial_update"} if "change" in changes else {}
    one |= {"delete": "destroy"} if "delete" in changes else {}
    found = [
        path(f"v1/{address}/", door.as_view(many), name=f"api-{address}"),
        path(f"v1/{address}/{key}/", door.as_view(one), name=f"api-{address}-one"),
    ]
    for verb in verbs:
        word, _, method = verb.partition(":")
        view = door.as_view({"post": method or word.replace("-", "_")})
        found.append(path(f"v1/{address}/{key}/{word}/", view, name=f"api-{address}-{word}"))
    return found


NAME = "<str:name>"
SERVER_VERBS = ("inspect", "power", "maintenance", "quarantine", "declare-blank", "retire")

urlpatterns = [
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("v1/me/", Me.as_view(), name="api-me"),
    path("v1/o/<uuid:uid>/", ByUid.as_view(), name="api-o"),
    path("v1/events/", Events.as_view({"get": "list"}), name="api-events"),
    # Before the servers' own addresses: no server has this name.
    path("v1/servers/test-connection/", Servers.as_view({"post": "test_unsaved"})),
    *noun("servers", Servers, NAME, "create change", *SERVER_VERBS, "test-connection:test_saved"),
    *noun("node-providers", Providers, NAME, "create change", "check"),
    path("v1/node-types/match/", NodeTypes.as_view({"get": "match"}), name="api-match"),
    *noun("node-types", NodeTypes, "<str:full_name>", "create change"),
    *noun("os-images", Images, NAME, "create change delete"),
    *noun("node-claims", Claims, f"<str:tenant>/{NAME}", "create delete", "release", "retry"),
    *noun("operations", Operations, "<uuid:uid>"),
    *noun("fabrics", Fabrics, NAME, "", "check"),
    *noun("segments", Segments, f"<str:fabric>/{NAME}", "create", "observe"),
    *noun("attachments", Attachments, "<uuid:uid>"),
    *noun("links", Links, "<uuid:uid>", "create delete"),
    *noun("tenants", Tenants, NAME, "create change"),
    *noun("cluster-templates", Templates, NAME),
    *noun("clusters", Clusters, f"<str:tenant>/{NAME}", "create delete", "retry"),
    path(
        "v1/clusters/<str:tenant>/<str:name>/kubeconfig/",
        Clusters.as_view({"post": "kubeconfig"}, renderer_classes=[YamlRenderer, JSONRenderer]),
        name="api-kubeconfig",
    ),
    path(
        "v1/clusters/<str:tenant>/<str:name>/pools/<str:pool>/",
        Clusters.as_view({"patch": "pool"}),
        name="api-pool",
    ),
    path("v1/<path:rest>", NoSuchAddress.as_view()),
]
