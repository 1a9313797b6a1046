"""OPTIONS: what an address is; which methods it takes is in Allow, their shapes in the schema."""

from __future__ import annotations

from typing import Any

from rest_framework.metadata import BaseMetadata
from rest_framework.request import Request


class Methods(BaseMetadata):
    def determine_metadata(self, request: Request, view: Any) -> dict[str, Any]:
        return {"name": view.get_view_name(), "schema": "/api/schema/"}
