"""Bearer tokens: `Authorization: Bearer gpc_…`, compared by digest, refused when expired or its
owner is disabled.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from gpucloud.models import ApiToken, User


class TokenAuthentication(BaseAuthentication):
    """Returns (owner, token) for a good bearer, None without one, and raises 401 for a bad one."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        parts = get_authorization_header(request).decode("latin-1").split()
        if not parts or parts[0].lower() != "bearer":
            return None
        if len(parts) != 2:
            raise AuthenticationFailed("Send the token as: Authorization: Bearer gpc_….")
        token = (
            ApiToken.objects.select_related("owner")
            .filter(digest=ApiToken.digest_of(parts[1]), owner__is_active=True)
            .first()
        )
        now = timezone.now()
        if token is None or (token.expires and token.expires <= now):
            raise AuthenticationFailed("The token is unknown or has expired. Make a new one.")
        if token.last_used is None or now - token.last_used > timedelta(minutes=1):
            ApiToken.objects.filter(pk=token.pk).update(last_used=now)
        # Read by gpucloud.policy: a token bound to a tenant reaches nothing beside it.
        token.owner.only_tenant = token.tenant_id
        return token.owner, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class Scopes(BasePermission):
    """A token does no more than its scopes say; a session has no scopes."""

    def has_permission(self, request: Request, view: Any) -> bool:
        token = request.auth
        if not isinstance(token, ApiToken) or not token.scopes:
            return True
        wanted = "read" if request.method in SAFE_METHODS else "write"
        self.message = f"This token lacks the scope “{wanted}”."
        return wanted in token.scopes
