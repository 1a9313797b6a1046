"""Pages of provisioning."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioning.views import claims

urlpatterns: list[URLPattern] = [
    path("claims/", claims.index, name="claims"),
    path("claims/<slug:tenant>/<slug:name>/", claims.detail, name="claim"),
    path("claims/<slug:tenant>/<slug:name>/actions/", claims.buttons, name="claim-actions"),
    path("claims/<slug:tenant>/<slug:name>/selection/", claims.selection, name="claim-selection"),
    path("claims/<slug:tenant>/<slug:name>/retry/", claims.retry, name="claim-retry"),
    path("claims/<slug:tenant>/<slug:name>/release/", claims.release, name="claim-release"),
]
