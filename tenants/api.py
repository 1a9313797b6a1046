"""Tenants, cluster templates and clusters in REST."""

from __future__ import annotations

from typing import Any

import yaml
from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from gpucloud import policy
from gpucloud.api.fields import Labels, Moment, Nothing, Row, Strict, Text, Whole
from gpucloud.api.filters import Filter, states
from gpucloud.api.steps import StepSerializer, steps_of
from gpucloud.api.views import IDEMPOTENCY, Door, verb
from gpucloud.problems import Invalid
from gpucloud.reasons import reason
from provisioning.models import NodeType, OSImage
from provisioning.services.claims import quota_used
from tenants.models import ClusterTemplate, NodePool, Tenant, TenantCluster
from tenants.services import access, clusters, tenants

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class MembershipSerializer(serializers.Serializer[Any]):
    user = serializers.CharField(source="user.username")
    role = serializers.CharField()


class TenantSerializer(Row):
    name = serializers.CharField()
    display_name = serializers.CharField()
    project_namespace = serializers.CharField(source="namespace")
    quota = serializers.DictField(child=serializers.IntegerField())


class LimitSerializer(serializers.Serializer[Any]):
    used = serializers.IntegerField()
    limit = serializers.IntegerField(allow_null=True)


class UsageSerializer(serializers.Serializer[Any]):
    servers = LimitSerializer()
    gpus = LimitSerializer()
    wanted = serializers.IntegerField(help_text="Sum of all pools.")


class TenantDetailSerializer(TenantSerializer):
    usage = serializers.SerializerMethodField()
    members = MembershipSerializer(source="memberships", many=True)

    @extend_schema_field(UsageSerializer)
    def get_usage(self, tenant: Tenant) -> Any:
        return quota_used(tenant)


class TenantBody(Strict):
    name = Text(max_length=63)
    display_name = Text(required=False, allow_blank=True, max_length=100)
    project_namespace = Text(required=False, max_length=63)
    quota = serializers.DictField(required=False)


class TenantChange(Strict):
    display_name = Text(required=False, allow_blank=True, max_length=100)
    quota = serializers.DictField(required=False)


class Tenants(Door):
    full = TenantDetailSerializer
    brief = TenantSerializer
    search = ("name", "display_name")

    def rows(self) -> QuerySet[Any]:
        return Tenant.objects.prefetch_related("memberships__user")

    def retrieve(self, request: Request, name: str) -> Response:
        return self.answer(self.one(name=name))

    @extend_schema(
        request=TenantBody, responses={201: TenantDetailSerializer}, parameters=[IDEMPOTENCY]
    )
    def create(self, request: Request) -> Response:
        self.require("create", Tenant)
        values = self.body(TenantBody)
        return self.created(lambda: tenants.create(self.actor, **values))

    @extend_schema(request=TenantChange, responses=TenantDetailSerializer)
    def partial_update(self, request: Request, name: str) -> Response:
        tenant = self.one(name=name)
        self.require("change", tenant)
        values = self.body(TenantChange)
        return self.answer(tenants.update(tenant, self.actor, **values) if values else tenant)


class TemplateSerializer(Row):
    name = serializers.CharField()
    version = serializers.IntegerField()
    latest = serializers.BooleanField()
    title = serializers.CharField()
    description = serializers.CharField()
    parameters = serializers.JSONField(help_text="[{key, label, type, required, default, …}]")
    chart_version = serializers.CharField()


class TemplateDetailSerializer(TemplateSerializer):
    body = serializers.JSONField(required=False)
    control_plane = serializers.CharField(source="control_plane.name", required=False)


class Templates(Door):
    full = TemplateDetailSerializer
    public = TemplateSerializer
    search = ("name", "title")
    filters = {"latest": Filter("latest", "Only what new clusters get.", kind="boolean")}

    def rows(self) -> QuerySet[Any]:
        return ClusterTemplate.objects.select_related("control_plane")

    @extend_schema(
        parameters=[OpenApiParameter("version", int, description="The latest if left out.")]
    )
    def retrieve(self, request: Request, name: str) -> Response:
        rows = self.get_queryset().filter(name=name)
        version = request.query_params.get("version")
        if version is None:
            return self.answer(self.one(rows, latest=True))
        if not version.isascii() or not version.isdigit() or len(version) > 9:
            raise ValidationError({"version": ["Give a whole number."]})
        return self.answer(self.one(rows, version=int(version)))


class TaintBody(Strict):
    key = serializers.RegexField(r"^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$", max_length=253)
    value = serializers.RegexField(
        r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
        required=False,
        allow_blank=True,
        max_length=63,
    )
    effect = Text(help_text="NoSchedule, PreferNoSchedule or NoExecute")

    def validate_effect(self, value: str) -> str:
        if value not in EFFECTS:
            raise ValidationError(f"Choose one of {', '.join(EFFECTS)}.")
        return value


class PoolBody(Strict):
    name = Text(max_length=40)
    kind = Text(required=False, help_text="static")
    node_type = Text(help_text="<provider>.<type>")
    quantity = Whole(required=False, min_value=0)
    labels = Labels(required=False)
    taints = TaintBody(many=True, required=False)
    image = Text(required=False, help_text="An OS image; the node type's own if left out.")


class ClusterBody(Strict):
    tenant = Text()
    name = Text(max_length=63)
    template = Text()
    parameters = serializers.DictField(required=False)
    pools = PoolBody(many=True, required=False)


class Quantity(Strict):
    quantity = Whole(min_value=0)


class PoolSerializer(serializers.Serializer[Any]):
    uid = serializers.UUIDField()
    rev = serializers.IntegerField()
    name = serializers.CharField()
    kind = serializers.CharField()
    node_type = serializers.CharField(source="node_type.full_name")
    quantity = serializers.IntegerField()
    minimum = serializers.IntegerField()
    maximum = serializers.IntegerField()
    labels = serializers.DictField(child=serializers.CharField())
    taints = serializers.JSONField()
    image = serializers.CharField(source="image.name", allow_null=True)
    claims = serializers.SerializerMethodField(help_text="How many claims are in which state.")

    def get_claims(self, pool: NodePool) -> dict[str, int]:
        counts: dict[str, int] = {}
        for claim in pool.claims.all():
            if claim.state != "gone":
                counts[claim.state] = counts.get(claim.state, 0) + 1
        return counts


class ClusterForTenant(Row):
    tenant = serializers.CharField(source="tenant.name")
    name = serializers.CharField()
    state = serializers.CharField()
    state_since = Moment()
    code = serializers.CharField()
    problem = serializers.SerializerMethodField()
    next = serializers.SerializerMethodField()
    template = serializers.CharField(source="template.name")
    template_version = serializers.IntegerField(source="template.version")
    parameters = serializers.JSONField()
    segment = serializers.SerializerMethodField()
    client_endpoint = serializers.CharField()
    node_endpoint = serializers.CharField()
    conditions = serializers.JSONField()
    pools = PoolSerializer(many=True)
    asked_by = serializers.CharField()
    ready_at = Moment(allow_null=True)

    def get_problem(self, cluster: TenantCluster) -> str:
        return reason(cluster.code).sentence if cluster.code else ""

    def get_next(self, cluster: TenantCluster) -> str:
        return reason(cluster.code).next if cluster.code else ""

    def get_segment(self, cluster: TenantCluster) -> str | None:
        found = cluster.segment
        return f"{found.fabric.name}/{found.name}" if found else None


class ClusterSerializer(ClusterForTenant):
    def get_problem(self, cluster: TenantCluster) -> str:
        return cluster.problem


class ClusterDetailForTenant(ClusterForTenant):
    steps = serializers.SerializerMethodField()

    @extend_schema_field(StepSerializer(many=True))
    def get_steps(self, cluster: TenantCluster) -> Any:
        return steps_of("cluster", cluster.uid, cluster.run, platform=False)


class ClusterDetailSerializer(ClusterSerializer):
    steps = serializers.SerializerMethodField()

    @extend_schema_field(StepSerializer(many=True))
    def get_steps(self, cluster: TenantCluster) -> Any:
        return steps_of("cluster", cluster.uid, cluster.run, platform=True)


class YamlRenderer(BaseRenderer):
    """For kubectl; what went wrong stays JSON."""

    media_type = "application/yaml"
    format = "yaml"
    charset = "utf-8"

    def render(
        self, data: Any, accepted_media_type: Any = None, renderer_context: Any = None
    ) -> bytes:
        response = (renderer_context or {}).get("response")
        if response is not None and response.status_code >= 400:
            return JSONRenderer().render(data)
        return yaml.safe_dump(data, sort_keys=False).encode()


class Clusters(Door):
    full = ClusterDetailSerializer
    public = ClusterDetailForTenant
    brief = ClusterSerializer
    public_brief = ClusterForTenant
    search = ("name", "tenant__name")
    hidden = ("state", "gone")
    filters = {
        "state": states(TenantCluster, "gone"),
        "tenant": Filter("tenant__name", "Name of the tenant."),
        "template": Filter("template__name", "Name of the template."),
    }

    def rows(self) -> QuerySet[Any]:
        return TenantCluster.objects.select_related(
            "tenant", "template", "segment__fabric"
        ).prefetch_related("pools__node_type", "pools__image", "pools__claims")

    def _cluster(self, tenant: str, name: str) -> TenantCluster:
        rows = self.get_queryset().exclude(state="gone")
        found: TenantCluster = self.one(rows, tenant__name=tenant, name=name)
        return found

    def _again(self, cluster: TenantCluster) -> Response:
        return self.accepted(self.one(pk=cluster.pk))

    def retrieve(self, request: Request, tenant: str, name: str) -> Response:
        return self.answer(self._cluster(tenant, name))

    @extend_schema(
        request=ClusterBody, responses={201: ClusterDetailSerializer}, parameters=[IDEMPOTENCY]
    )
    def create(self, request: Request) -> Response:
        """Ask for a cluster; its control plane and its nodes follow."""
        values = self.body(ClusterBody)
        tenant = own_tenant(self, values["tenant"])
        self.require("create cluster", tenant)
        template = ClusterTemplate.objects.filter(name=values["template"], latest=True).first()
        pools, errors = _pools(values.get("pools", []))
        if template is None:
            errors["template"] = [f"There is no template called {values['template']}."]
        if errors or template is None:
            raise Invalid(errors)
        name, parameters = values["name"], values.get("parameters", {})
        return self.created(
            lambda: self.one(
                pk=clusters.create_cluster(self.actor, tenant, name, template, parameters, pools).pk
            )
        )

    @extend_schema(responses={202: ClusterDetailSerializer})
    def destroy(self, request: Request, tenant: str, name: str) -> Response:
        """Nodes go home and are wiped, then the control plane goes, the network last."""
        cluster = self._cluster(tenant, name)
        self.require("delete", cluster)
        return self._again(clusters.delete_cluster(cluster, self.actor))

    @verb("clusters_retry", Nothing, ClusterDetailSerializer)
    def retry(self, request: Request, tenant: str, name: str) -> Response:
        cluster = self._cluster(tenant, name)
        self.require("retry", cluster)
        self.body(Nothing)
        return self._again(clusters.retry(cluster, self.actor))

    @extend_schema(request=Quantity, responses=ClusterDetailSerializer)
    def pool(self, request: Request, tenant: str, name: str, pool: str) -> Response:
        """Resize a pool; claims follow."""
        cluster = self._cluster(tenant, name)
        self.require("change", cluster)
        row = self.one(NodePool.objects.filter(cluster=cluster), name=pool)
        clusters.resize_pool(row, self.body(Quantity)["quantity"], self.actor)
        return self.answer(self.one(pk=cluster.pk))

    @extend_schema(
        operation_id="clusters_kubeconfig",
        request=Nothing,
        responses={
            (200, "application/yaml"): OpenApiTypes.STR,
            (200, "application/json"): OpenApiTypes.OBJECT,
        },
    )
    def kubeconfig(self, request: Request, tenant: str, name: str) -> Response:
        """The kubeconfig at the client endpoint; taking it is written in the history."""
        cluster = self._cluster(tenant, name)
        self.require("kubeconfig", cluster)
        self.body(Nothing)
        document = access.client_kubeconfig(cluster, self.actor)
        headers = {
            "Cache-Control": "no-store",
            "Content-Disposition": f'attachment; filename="{cluster.name}.kubeconfig"',
        }
        return Response(document, headers=headers)


def own_tenant(door: Door, name: str) -> Tenant:
    """The tenant named in a body; a foreign one is answered as one that is not there."""
    found = policy.visible(door.request.user, Tenant.objects.filter(name=name)).first()
    if found is None:
        raise Invalid({"tenant": [f"There is no tenant called {name}, or you are not in it."]})
    if found.builtin:
        raise Invalid({"tenant": [f"{name} is the platform's own and asks for nothing here."]})
    return found


def _pools(given: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Names of the body to rows; errors by place."""
    errors: dict[str, list[str]] = {}
    pools = []
    for index, one in enumerate(given):
        node_type = NodeType.objects.filter(full_name=one["node_type"]).first()
        image = OSImage.objects.filter(name=one["image"]).first() if "image" in one else None
        if node_type is None:
            errors[f"pools.{index}.node_type"] = [f"There is no node type {one['node_type']}."]
        if "image" in one and image is None:
            errors[f"pools.{index}.image"] = [f"There is no image {one['image']}."]
        pools.append({**one, "node_type": node_type, "image": image})
    return pools, errors
