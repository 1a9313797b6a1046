"""Pages of tenants."""

from __future__ import annotations

from django.urls import URLPattern, path

from tenants.views import clusters, new_cluster, templates, tenants

ONE = "clusters/<slug:tenant>/<slug:name>/"

urlpatterns: list[URLPattern] = [
    path("clusters/", clusters.index, name="clusters"),
    path("clusters/new/", new_cluster.new, name="cluster-new"),
    path("clusters/new/preview/", new_cluster.preview, name="cluster-preview"),
    path(ONE, clusters.detail, name="cluster"),
    path(f"{ONE}actions/", clusters.buttons, name="cluster-actions"),
    path(f"{ONE}yaml/", clusters.document, name="cluster-yaml"),
    path(f"{ONE}kubeconfig/", clusters.kubeconfig, name="cluster-kubeconfig"),
    path(f"{ONE}pools/<slug:pool>/", clusters.resize, name="cluster-pool"),
    path(f"{ONE}retry/", clusters.retry, name="cluster-retry"),
    path(f"{ONE}delete/", clusters.delete, name="cluster-delete"),
    path("templates/", templates.index, name="templates"),
    path("templates/<slug:name>/", templates.detail, name="template"),
    path("tenants/", tenants.index, name="tenants"),
    path("tenants/new/", tenants.new, name="tenant-new"),
    path("tenants/<slug:name>/", tenants.detail, name="tenant"),
    path("tenants/<slug:name>/edit/", tenants.edit, name="tenant-edit"),
]
