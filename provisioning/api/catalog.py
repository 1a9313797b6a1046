"""What can be ordered, in REST: node providers, node types with their capacity, OS images."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from gpucloud import driver_settings
from gpucloud.api.fields import Labels, Moment, Nothing, Row, Settings, Strict, Text, Whole
from gpucloud.api.filters import Filter
from gpucloud.api.views import IDEMPOTENCY, Door, verb
from gpucloud.problems import Invalid
from inventory.models import KubernetesConnection, Server
from provisioning.models import NodeProvider, NodeType, OSImage
from provisioning.services import images, node_types, providers


class ProviderSerializer(Row):
    name = serializers.CharField()
    display_name = serializers.CharField()
    driver = serializers.CharField()
    config = serializers.SerializerMethodField()
    connection = serializers.CharField(source="connection.name", allow_null=True)
    properties = serializers.JSONField()
    node_types = serializers.SerializerMethodField()
    checked = Moment(allow_null=True)
    problem = serializers.CharField()

    def get_config(self, provider: NodeProvider) -> dict[str, Any]:
        return driver_settings.shown("provider", provider.driver, provider.config)

    def get_node_types(self, provider: NodeProvider) -> list[str]:
        return [one.full_name for one in provider.node_types.all()]


class ProviderBody(Strict):
    name = Text(max_length=40)
    driver = Text(max_length=16)
    display_name = Text(required=False, allow_blank=True, max_length=100)
    connection = Text(required=False, allow_null=True, max_length=63)
    config = Settings(required=False, help_text="Secret settings are only ever set.")
    properties = serializers.DictField(required=False)


class ProviderChange(Strict):
    display_name = Text(required=False, allow_blank=True, max_length=100)
    connection = Text(required=False, allow_null=True, max_length=63)
    config = Settings(required=False)
    properties = serializers.DictField(required=False)


class Providers(Door):
    full = ProviderSerializer
    search = ("name", "display_name")
    filters = {"driver": Filter("driver", "Kind of driver.")}

    def rows(self) -> QuerySet[Any]:
        return NodeProvider.objects.select_related("connection").prefetch_related("node_types")

    def retrieve(self, request: Request, name: str) -> Response:
        return self.answer(self.one(name=name))

    @extend_schema(
        request=ProviderBody, responses={201: ProviderSerializer}, parameters=[IDEMPOTENCY]
    )
    def create(self, request: Request) -> Response:
        self.require("create", NodeProvider)
        values = _with_connection(self.body(ProviderBody))
        return self.created(lambda: providers.create(self.actor, **values))

    @extend_schema(request=ProviderChange, responses=ProviderSerializer)
    def partial_update(self, request: Request, name: str) -> Response:
        provider = self.one(name=name)
        self.require("change", provider)
        values = _with_connection(self.body(ProviderChange))
        if values:
            providers.update(provider, self.actor, **values)
        return self.answer(self.one(pk=provider.pk))

    @verb("node_providers_check", Nothing, ProviderSerializer)
    def check(self, request: Request, name: str) -> Response:
        """Try the provider's connection now; `problem` says what was found."""
        provider = self.one(name=name)
        self.require("check", provider)
        self.body(Nothing)
        providers.check(provider)
        return self.accepted(self.one(pk=provider.pk))


def _with_connection(values: dict[str, Any]) -> dict[str, Any]:
    name = values.get("connection")
    if name is not None:
        values["connection"] = KubernetesConnection.objects.filter(name=name).first()
        if values["connection"] is None:
            raise Invalid({"connection": [f"There is no connection called {name}."]})
    return values


class AvailableSerializer(serializers.Serializer[Any]):
    available = serializers.IntegerField()


class CapacitySerializer(AvailableSerializer):
    """Counted from rows; `out` are those in maintenance, quarantine, cleaning or failure."""

    total = serializers.IntegerField(required=False)
    claimed = serializers.IntegerField(required=False)
    waiting = serializers.IntegerField(required=False)
    out = serializers.IntegerField(required=False)


class NodeTypeForTenant(Row):
    full_name = serializers.CharField(help_text="<provider>.<type>")
    name = serializers.CharField()
    display_name = serializers.CharField()
    resources = serializers.JSONField()
    sku = serializers.JSONField()
    cost = serializers.IntegerField()
    image = serializers.CharField(source="image.name", allow_null=True)
    capacity = serializers.SerializerMethodField()

    @extend_schema_field(AvailableSerializer)
    def get_capacity(self, node_type: NodeType) -> Any:
        return AvailableSerializer(self._counts(node_type)).data

    def _counts(self, node_type: NodeType) -> dict[str, int]:
        counts: dict[int, dict[str, int]] | None = self.context.get("capacities")
        if counts is None:
            counts = node_types.capacities([node_type])
        return counts[node_type.pk]


class NodeTypeSerializer(NodeTypeForTenant):
    provider = serializers.CharField(source="provider.name", required=False)
    selector = serializers.DictField(child=serializers.CharField(), required=False)
    properties = serializers.JSONField(required=False)
    nic_plan = serializers.ListField(child=serializers.CharField(), required=False)
    post_seconds = serializers.IntegerField(required=False)
    wipe_policy = serializers.CharField(required=False)

    @extend_schema_field(CapacitySerializer)
    def get_capacity(self, node_type: NodeType) -> Any:
        return CapacitySerializer(self._counts(node_type)).data


class NodeTypeChange(Strict):
    display_name = Text(required=False, allow_blank=True, max_length=100)
    selector = Labels(required=False)
    resources = serializers.DictField(required=False)
    properties = serializers.DictField(required=False)
    cost = Whole(required=False, min_value=0, max_value=2**31 - 1)
    sku = serializers.DictField(required=False, help_text="{gpu_model, gpu_count}")
    nic_plan = serializers.ListField(child=Text(), required=False)
    post_seconds = Whole(required=False, min_value=1, max_value=7200)
    wipe_policy = Text(required=False)
    image = Text(required=False, allow_null=True)


class NodeTypeBody(NodeTypeChange):
    provider = Text()
    name = Text(max_length=40)


class MatchSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    available = serializers.IntegerField()
    names = serializers.ListField(child=serializers.CharField(), help_text="The first twenty.")


class NodeTypes(Door):
    full = NodeTypeSerializer
    public = NodeTypeForTenant
    search = ("full_name", "display_name")
    filters = {"provider": Filter("provider__name", "Name of the provider.")}

    def rows(self) -> QuerySet[Any]:
        return NodeType.objects.select_related("provider", "image")

    def paginate_queryset(self, queryset: Any) -> Any:
        # One count for the whole page instead of one per row.
        self.page_rows = super().paginate_queryset(queryset)
        return self.page_rows

    def get_serializer_context(self) -> dict[str, Any]:
        rows = getattr(self, "page_rows", None)
        counted = {} if rows is None else {"capacities": node_types.capacities(rows)}
        return {**super().get_serializer_context(), **counted}

    def retrieve(self, request: Request, full_name: str) -> Response:
        return self.answer(self.one(full_name=full_name))

    @extend_schema(
        request=NodeTypeBody, responses={201: NodeTypeSerializer}, parameters=[IDEMPOTENCY]
    )
    def create(self, request: Request) -> Response:
        self.require("create", NodeType)
        values = _with_image(self.body(NodeTypeBody))
        name, provider = values.pop("name"), _provider(values.pop("provider"))
        return self.created(lambda: node_types.create(self.actor, provider, name, **values))

    @extend_schema(request=NodeTypeChange, responses=NodeTypeSerializer)
    def partial_update(self, request: Request, full_name: str) -> Response:
        node_type = self.one(full_name=full_name)
        self.require("change", node_type)
        values = _with_image(self.body(NodeTypeChange))
        if values:
            node_types.update(node_type, self.actor, **values)
        return self.answer(self.one(pk=node_type.pk))

    @extend_schema(
        operation_id="node_types_match",
        parameters=[
            OpenApiParameter("provider", str, required=True),
            OpenApiParameter("selector", str, description="key=value,key=value"),
        ],
        responses=MatchSerializer,
        filters=False,
    )
    def match(self, request: Request) -> Response:
        """How many servers a type with this selector would have."""
        self.require("match", NodeType)
        provider = _provider(request.query_params.get("provider", ""))
        found = providers.matching(provider, _selector(request.query_params.get("selector", "")))
        usable = Server.objects.usable().filter(pk__in=[one.pk for one in found]).count()
        names = sorted(one.name for one in found)[:20]
        return Response({"count": len(found), "available": usable, "names": names})


def _provider(name: str) -> NodeProvider:
    found = NodeProvider.objects.filter(name=name).first()
    if found is None:
        raise Invalid({"provider": [f"There is no provider called {name}."]})
    return found


def _selector(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if any(not mark or not key.strip() for key, mark, _ in pairs):
        raise ValidationError({"selector": ["Give key=value, several with commas between."]})
    return {key.strip(): value.strip() for key, _, value in pairs}


def _with_image(values: dict[str, Any]) -> dict[str, Any]:
    name = values.get("image")
    if name is not None:
        values["image"] = OSImage.objects.filter(name=name).first()
        if values["image"] is None:
            raise Invalid({"image": [f"There is no image called {name}."]})
    return values


class ImageSerializer(Row):
    name = serializers.CharField()
    display_name = serializers.CharField()
    url = serializers.CharField()
    checksum = serializers.CharField()
    checksum_type = serializers.CharField()
    format = serializers.CharField()


class ImageChange(Strict):
    display_name = Text(required=False, allow_blank=True, max_length=100)
    url = Text(required=False, max_length=500)
    checksum = Text(required=False, max_length=128)
    checksum_type = Text(required=False, help_text="sha256 or sha512")
    format = Text(required=False, help_text="raw or qcow2")


class ImageBody(ImageChange):
    name = Text(max_length=63)
    url = Text(max_length=500)
    checksum = Text(max_length=128)


class Images(Door):
    full = ImageSerializer
    search = ("name", "display_name", "url")
    filters = {"format": Filter("format", "Format.", OSImage.Format.values)}

    def rows(self) -> QuerySet[Any]:
        return OSImage.objects.all()

    def retrieve(self, request: Request, name: str) -> Response:
        return self.answer(self.one(name=name))

    @extend_schema(request=ImageBody, responses={201: ImageSerializer}, parameters=[IDEMPOTENCY])
    def create(self, request: Request) -> Response:
        self.require("create", OSImage)
        values = self.body(ImageBody)
        return self.created(lambda: images.create(self.actor, **values))

    @extend_schema(request=ImageChange, responses=ImageSerializer)
    def partial_update(self, request: Request, name: str) -> Response:
        image = self.one(name=name)
        self.require("change", image)
        values = self.body(ImageChange)
        return self.answer(images.update(image, self.actor, **values) if values else image)

    @extend_schema(responses={202: ImageSerializer})
    def destroy(self, request: Request, name: str) -> Response:
        image = self.one(name=name)
        self.require("delete", image)
        images.remove(image, self.actor)
        return self.accepted(image)
