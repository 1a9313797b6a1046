"""Pages of inventory."""

from __future__ import annotations

from django.urls import path

from inventory.views import acting, registering, servers

urlpatterns = [
    path("servers/", servers.index, name="servers"),
    path("servers/register/", registering.register, name="server-register"),
    path("servers/register/test/", registering.test_unsaved, name="server-register-test"),
    path("servers/<str:name>/", servers.detail, name="server"),
    path("servers/<str:name>/actions/", servers.actions, name="server-actions"),
    path("servers/<str:name>/bmc/test/", registering.test_saved, name="server-bmc-test"),
    path("servers/<str:name>/<slug:action>/", acting.act, name="server-action"),
]
