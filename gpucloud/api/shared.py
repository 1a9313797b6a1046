"""What belongs to no app in REST: who I am, the history, and every object by its uid."""

from __future__ import annotations

import uuid
from typing import Any, cast

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpucloud import history, policy
from gpucloud.api.fields import Moment
from gpucloud.api.filters import Filter
from gpucloud.api.paging import ByPosition
from gpucloud.api.views import Door
from gpucloud.history import KINDS
from gpucloud.models import ApiToken, Event, User
from inventory.api.servers import Servers
from network.api import Attachments, Fabrics, Links, Segments
from provisioning.api.catalog import Images, NodeTypes, Providers
from provisioning.api.claims import Claims, Operations
from tenants.api import Clusters, Templates, Tenants

# Every object that has a uid of its own, and the address that it goes by.
DOORS: tuple[tuple[type[Door], str], ...] = (
    (Servers, "servers/{0.name}/"),
    (Claims, "node-claims/{0.tenant.name}/{0.name}/"),
    (Clusters, "clusters/{0.tenant.name}/{0.name}/"),
    (Operations, "operations/{0.uid}/"),
    (Segments, "segments/{0.fabric.name}/{0.name}/"),
    (Attachments, "attachments/{0.uid}/"),
    (Links, "links/{0.uid}/"),
    (Fabrics, "fabrics/{0.name}/"),
    (Tenants, "tenants/{0.name}/"),
    (Providers, "node-providers/{0.name}/"),
    (NodeTypes, "node-types/{0.full_name}/"),
    (Images, "os-images/{0.name}/"),
    (Templates, "cluster-templates/{0.name}/?version={0.version}"),
)


class EventForTenant(serializers.Serializer[Any]):
    position = serializers.IntegerField()
    uid = serializers.UUIDField()
    at = Moment()
    actor = serializers.CharField()
    kind = serializers.CharField(help_text="Kind of the object.")
    object_uid = serializers.UUIDField()
    object_name = serializers.CharField()
    tenant = serializers.CharField(source="tenant.name", allow_null=True)
    verb = serializers.CharField()
    message = serializers.SerializerMethodField()
    code = serializers.CharField()

    def get_message(self, event: Event) -> str:
        return history.words(event, staff=False)


class EventSerializer(EventForTenant):
    data = serializers.JSONField(required=False)  # type: ignore[assignment]
    previous_hash = serializers.CharField(required=False)
    hash = serializers.CharField(required=False)

    def get_message(self, event: Event) -> str:
        return history.words(event, staff=True)


class Events(Door):
    """Sealed history: gapless positions in one chain of hashes."""

    full = EventSerializer
    public = EventForTenant
    pagination_class = ByPosition
    # Not the sentence: a tenant must not find by guessing what is not shown to them.
    search = ("object_name", "actor")
    filters = {
        "after": Filter(
            "position__gt", "Onwards from this position, oldest first.", kind="integer"
        ),
        "object": Filter("object_uid", "Uid of the object.", kind="uuid"),
        "kind": Filter("kind", "Kind of the object.", sorted(set(KINDS.values()))),
        "tenant": Filter("tenant__name", "Name of the tenant."),
        "verb": Filter("verb", "What happened."),
        "actor": Filter("actor", "Who did it."),
        "code": Filter("code", "Reason code."),
    }

    def rows(self) -> QuerySet[Any]:
        return Event.objects.filter(position__isnull=False).select_related("tenant")


class RoleSerializer(serializers.Serializer[Any]):
    tenant = serializers.CharField(source="tenant.name")
    role = serializers.CharField()


class TokenSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    tenant = serializers.CharField(source="tenant.name", allow_null=True)
    expires = Moment(allow_null=True)


class MeSerializer(serializers.Serializer[Any]):
    uid = serializers.UUIDField()
    username = serializers.CharField()
    platform_role = serializers.CharField()
    tenants = RoleSerializer(many=True)
    token = TokenSerializer(allow_null=True)
    theme = serializers.CharField()
    language = serializers.CharField()
    zone = serializers.CharField()


class Me(APIView):
    """Who asks, with which roles and through which token."""

    @extend_schema(operation_id="me", responses=MeSerializer)
    def get(self, request: Request) -> Response:
        user = cast(User, request.user)
        roles = user.memberships.select_related("tenant").order_by("tenant__name")
        bound = policy.only_tenant(user)
        shown = {
            **{
                name: getattr(user, name)
                for name in ("uid", "username", "platform_role", "theme", "language", "zone")
            },
            "tenants": [one for one in roles if bound in (None, one.tenant_id)],
            "token": request.auth if isinstance(request.auth, ApiToken) else None,
        }
        return Response(MeSerializer(shown).data)


class ByUid(APIView):
    """Every object's permanent address; one that is gone is found only here."""

    @extend_schema(
        operation_id="objects_retrieve",
        parameters=[OpenApiParameter("uid", OpenApiTypes.UUID, OpenApiParameter.PATH)],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request, uid: uuid.UUID) -> Response:
        for door, address in DOORS:
            view = door(request=request, action="retrieve", format_kwarg=None)
            row = view.get_queryset().filter(uid=uid).first()
            if row is not None:
                where = {"Content-Location": f"/api/v1/{address.format(row)}"}
                return Response(view.shown(row), headers=where)
        raise NotFound
