"""Node claims and operations in REST."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gpucloud.api.fields import Labels, Moment, Nothing, Row, Strict, Text
from gpucloud.api.filters import Filter, states
from gpucloud.api.steps import StepSerializer, steps_of
from gpucloud.api.views import IDEMPOTENCY, Door, verb
from gpucloud.problems import Invalid
from gpucloud.reasons import reason
from provisioning.models import NodeClaim, NodeType, Operation, OSImage
from provisioning.services import claims
from tenants.api import TaintBody, own_tenant
from tenants.models import TenantCluster


class PlaceSerializer(serializers.Serializer[Any]):
    """The place in the queue of the node type; 0 of 0 when the claim does not wait."""

    place = serializers.IntegerField()
    waiting = serializers.IntegerField()


class OperationForTenant(Row):
    operation = serializers.CharField(source="kind", help_text="claim, release, inspect or wipe")
    state = serializers.CharField()
    claim = serializers.SerializerMethodField()
    actor = serializers.CharField()
    code = serializers.CharField()
    problem = serializers.SerializerMethodField()
    next = serializers.SerializerMethodField()
    ended = Moment(allow_null=True)

    def get_claim(self, operation: Operation) -> str | None:
        claim = operation.claim
        return f"{claim.tenant.name}/{claim.name}" if claim else None

    def get_problem(self, operation: Operation) -> str:
        return reason(operation.code).sentence if operation.code else ""

    def get_next(self, operation: Operation) -> str:
        return reason(operation.code).next if operation.code else ""


class OperationSerializer(OperationForTenant):
    server = serializers.CharField(source="server.name", allow_null=True, required=False)
    claim_uid = serializers.UUIDField(source="claim.uid", allow_null=True, required=False)

    def get_problem(self, operation: Operation) -> str:
        return operation.problem


class OperationDetailForTenant(OperationForTenant):
    steps = serializers.SerializerMethodField()

    @extend_schema_field(StepSerializer(many=True))
    def get_steps(self, operation: Operation) -> Any:
        return steps_of("operation", operation.uid, platform=False)


class OperationDetailSerializer(OperationSerializer):
    steps = serializers.SerializerMethodField()

    @extend_schema_field(StepSerializer(many=True))
    def get_steps(self, operation: Operation) -> Any:
        return steps_of("operation", operation.uid, platform=True)


class ClaimForTenant(Row):
    tenant = serializers.CharField(source="tenant.name")
    name = serializers.CharField()
    purpose = serializers.CharField()
    state = serializers.CharField()
    state_since = Moment()
    code = serializers.CharField()
    problem = serializers.SerializerMethodField()
    next = serializers.SerializerMethodField()
    cluster = serializers.CharField(source="cluster.name", allow_null=True)
    pool = serializers.CharField(source="pool_name")
    node_type = serializers.CharField(source="node_type.full_name")
    image = serializers.CharField(source="image.name", allow_null=True)
    node_name = serializers.CharField()
    address = serializers.CharField(source="tenant_address", allow_null=True)
    labels = serializers.DictField(child=serializers.CharField())
    taints = serializers.JSONField()
    asked_by = serializers.CharField()
    release_wanted = serializers.BooleanField()
    ready_at = Moment(allow_null=True)
    gone_at = Moment(allow_null=True)

    def get_problem(self, claim: NodeClaim) -> str:
        return reason(claim.code).sentence if claim.code else ""

    def get_next(self, claim: NodeClaim) -> str:
        return reason(claim.code).next if claim.code else ""


class ClaimSerializer(ClaimForTenant):
    server = serializers.CharField(source="server.name", allow_null=True, required=False)
    tenancy = serializers.IntegerField(allow_null=True, required=False)

    def get_problem(self, claim: NodeClaim) -> str:
        return claim.problem


class ClaimDetailForTenant(ClaimForTenant):
    queue = serializers.SerializerMethodField()
    operations = OperationDetailForTenant(many=True)

    @extend_schema_field(PlaceSerializer)
    def get_queue(self, claim: NodeClaim) -> Any:
        place, waiting = claims.position(claim)
        return {"place": place, "waiting": waiting}


class ClaimDetailSerializer(ClaimSerializer):
    """`selection` tells which servers were considered and why each was taken or not."""

    queue = serializers.SerializerMethodField()
    operations = OperationDetailSerializer(many=True)
    selection = serializers.JSONField(required=False)
    evidence = serializers.JSONField(required=False)

    @extend_schema_field(PlaceSerializer)
    def get_queue(self, claim: NodeClaim) -> Any:
        place, waiting = claims.position(claim)
        return {"place": place, "waiting": waiting}


class ClaimBody(Strict):
    """A claim without a pool: one node of a type for a cluster."""

    tenant = Text()
    cluster = Text()
    node_type = Text(help_text="<provider>.<type>")
    name = Text(required=False, max_length=63)
    image = Text(required=False)
    labels = Labels(required=False)
    taints = TaintBody(many=True, required=False)


class Claims(Door):
    full = ClaimDetailSerializer
    public = ClaimDetailForTenant
    brief = ClaimSerializer
    public_brief = ClaimForTenant
    search = ("name", "tenant__name", "node_name")
    hidden = ("state", "gone")
    filters = {
        "state": states(NodeClaim, "gone"),
        "tenant": Filter("tenant__name", "Name of the tenant."),
        "cluster": Filter("cluster__name", "Name of the cluster."),
        "pool": Filter("pool_name", "Name of the pool."),
        "node_type": Filter("node_type__full_name", "<provider>.<type>"),
        "code": Filter("code", "Reason code."),
    }

    def rows(self) -> QuerySet[Any]:
        rows = NodeClaim.objects.select_related("tenant", "cluster", "node_type", "image", "server")
        if self.action == "list":
            return rows
        return rows.prefetch_related("operations__claim__tenant", "operations__server")

    def _claim(self, tenant: str, name: str) -> NodeClaim:
        rows = self.get_queryset().exclude(state="gone")
        found: NodeClaim = self.one(rows, tenant__name=tenant, name=name)
        return found

    def _again(self, claim: NodeClaim) -> Response:
        return self.accepted(self.one(pk=claim.pk))

    def retrieve(self, request: Request, tenant: str, name: str) -> Response:
        return self.answer(self._claim(tenant, name))

    @extend_schema(
        request=ClaimBody, responses={201: ClaimDetailSerializer}, parameters=[IDEMPOTENCY]
    )
    def create(self, request: Request) -> Response:
        values = self.body(ClaimBody)
        tenant = own_tenant(self, values.pop("tenant"))
        self.require("create claim", tenant)
        errors: dict[str, list[str]] = {}
        cluster = TenantCluster.objects.live().filter(tenant=tenant, name=values["cluster"]).first()
        if cluster is None:
            errors["cluster"] = [f"Tenant {tenant} has no cluster called {values['cluster']}."]
        node_type = NodeType.objects.filter(full_name=values.pop("node_type")).first()
        if node_type is None:
            errors["node_type"] = ["There is no such node type."]
        if "image" in values:
            name = values["image"]
            values["image"] = OSImage.objects.filter(name=name).first()
            if values["image"] is None:
                errors["image"] = [f"There is no image called {name}."]
        if errors or node_type is None:
            raise Invalid(errors)
        values["cluster"] = cluster
        return self.created(
            lambda: self.one(pk=claims.request(self.actor, tenant, node_type, **values).pk)
        )

    @extend_schema(responses={202: ClaimDetailSerializer})
    def destroy(self, request: Request, tenant: str, name: str) -> Response:
        return self._release(tenant, name)

    @verb("node_claims_release", Nothing, ClaimDetailSerializer)
    def release(self, request: Request, tenant: str, name: str) -> Response:
        self.body(Nothing)
        return self._release(tenant, name)

    def _release(self, tenant: str, name: str) -> Response:
        claim = self._claim(tenant, name)
        self.require("release", claim)
        return self._again(claims.release(claim, self.actor))

    @verb("node_claims_retry", Nothing, ClaimDetailSerializer)
    def retry(self, request: Request, tenant: str, name: str) -> Response:
        claim = self._claim(tenant, name)
        self.require("retry", claim)
        self.body(Nothing)
        return self._again(claims.retry(claim, self.actor))


class Operations(Door):
    full = OperationDetailSerializer
    public = OperationDetailForTenant
    brief = OperationSerializer
    public_brief = OperationForTenant
    filters = {
        "state": states(Operation),
        "operation": Filter("kind", "Kind of the operation.", Operation.Kind.values),
        "claim": Filter(lambda value: _claim(value), "Uid, or <tenant>/<name>."),
        "server": Filter(lambda value: _server(value), "Uid or name."),
    }

    def rows(self) -> QuerySet[Any]:
        return Operation.objects.select_related("claim__tenant", "server")

    def retrieve(self, request: Request, uid: uuid.UUID) -> Response:
        return self.answer(self.one(uid=uid))


def _uid(value: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(value)
    except ValueError:
        return None


def _claim(value: str) -> Q:
    if uid := _uid(value):
        return Q(claim__uid=uid)
    tenant, mark, name = value.partition("/")
    if not mark:
        raise ValueError("Give a uid, or <tenant>/<name>.")
    return Q(claim__tenant__name=tenant, claim__name=name)


def _server(value: str) -> Q:
    if uid := _uid(value):
        return Q(server__uid=uid)
    return Q(server__name=value)
