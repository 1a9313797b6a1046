"""Mounts the dashboard, sign-in, the REST API and the pages of the four apps."""

from __future__ import annotations

from django.contrib.auth import views as auth_views
from django.urls import include, path

from gpucloud import gallery, views, views_activity, views_ui

urlpatterns = [
    path("", views.dashboard, name="dashboard"),
    path("activity/", views_activity.activity, name="activity"),
    path("o/<uuid:uid>/", views.permanent, name="permanent"),
    path("sign-in/", auth_views.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("sign-out/", auth_views.LogoutView.as_view(), name="logout"),
    path("find/", views_ui.find, name="find"),
    path("me/theme/", views_ui.theme, name="theme"),
    path("ui/", gallery.gallery, name="gallery"),
    path("livez", views.livez, name="livez"),
    path("readyz", views.readyz, name="readyz"),
    path("api/", include("gpucloud.api.urls")),
    path("", include("inventory.urls")),
    path("", include("network.urls")),
    path("", include("tenants.urls")),
    path("", include("provisioning.urls")),
]

handler403 = "gpucloud.views.denied"
handler404 = "gpucloud.views.not_found"
handler500 = "gpucloud.views.broken"
