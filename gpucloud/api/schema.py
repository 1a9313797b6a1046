"""How the API describes itself: bearer tokens, and the problem document of every address."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from gpucloud.api.problems import ProblemSerializer


class Bearer(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "gpucloud.api.auth.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "gpc_…"}


class Schema(AutoSchema):
    """Adds the problem document: any address may answer with it."""

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        problem = self.resolve_serializer(ProblemSerializer, "response")
        bodies["default"] = {
            "description": "What went wrong, with a reason code.",
            "content": {"application/problem+json": {"schema": problem.ref}},
        }
        return bodies
