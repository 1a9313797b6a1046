"""The project's own app: registers the check of drivers and their settings."""

from __future__ import annotations

from django.apps import AppConfig


class GpucloudConfig(AppConfig):
    name = "gpucloud"

    def ready(self) -> None:
        from gpucloud import checks  # noqa: F401  (registers itself)
