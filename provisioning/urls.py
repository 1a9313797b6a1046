"""Pages of provisioning."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioning.views import claims, images, node_types, providers

CLAIM = "claims/<slug:tenant>/<slug:name>/"

urlpatterns: list[URLPattern] = [
    path("claims/", claims.index, name="claims"),
    path(CLAIM, claims.detail, name="claim"),
    path(f"{CLAIM}actions/", claims.buttons, name="claim-actions"),
    path(f"{CLAIM}selection/", claims.selection, name="claim-selection"),
    path(f"{CLAIM}retry/", claims.retry, name="claim-retry"),
    path(f"{CLAIM}release/", claims.release, name="claim-release"),
    path("providers/", providers.index, name="providers"),
    path("providers/new/", providers.new, name="provider-new"),
    path("providers/<slug:name>/", providers.detail, name="provider"),
    path("providers/<slug:name>/edit/", providers.edit, name="provider-edit"),
    path("providers/<slug:name>/check/", providers.check, name="provider-check"),
    path("node-types/", node_types.index, name="node-types"),
    path("node-types/new/", node_types.new, name="node-type-new"),
    path("node-types/matches/", node_types.matches, name="node-type-matches"),
    path("node-types/<str:name>/", node_types.detail, name="node-type"),
    path("node-types/<str:name>/edit/", node_types.edit, name="node-type-edit"),
    path("images/", images.index, name="images"),
    path("images/new/", images.new, name="image-new"),
    path("images/<slug:name>/", images.detail, name="image"),
    path("images/<slug:name>/edit/", images.edit, name="image-edit"),
    path("images/<slug:name>/delete/", images.delete, name="image-delete"),
]
