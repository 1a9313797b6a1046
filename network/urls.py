"""Pages of network."""

from __future__ import annotations

from django.urls import path

from network import views

urlpatterns = [
    path("networks/", views.index, name="networks"),
    path("networks/<str:fabric>/<str:name>/", views.detail, name="segment"),
    path("networks/<str:fabric>/<str:name>/read/", views.read, name="segment-read"),
]
