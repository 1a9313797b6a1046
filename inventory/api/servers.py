"""Servers in REST: register, label, inspect, power, flags, and the test of a BMC's settings."""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.lookups import Exact
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from gpucloud import driver_settings
from gpucloud.api.fields import Nothing
from gpucloud.api.filters import Filter, states
from gpucloud.api.views import IDEMPOTENCY, Door, verb
from gpucloud.drivers import DriverError
from gpucloud.problems import Invalid, NotAllowed
from inventory.api.shapes import (
    FlagBody,
    MaintenanceBody,
    PowerBody,
    ServerBody,
    ServerChange,
    ServerDetailSerializer,
    ServerSerializer,
    TestBody,
    TestResult,
    TypedName,
)
from inventory.models import KubernetesConnection, Server
from inventory.services import bmcs, servers
from provisioning.services import inspections


class Servers(Door):
    full = ServerDetailSerializer
    brief = ServerSerializer
    search = ("name", "serial", "model", "bmc__address", "interfaces__mac")
    hidden = ("state", "retired")
    filters = {
        "state": states(Server, "retired"),
        "power": Filter("power", "Power as last read.", Server.Power.values),
        "maintenance": Filter("maintenance", "In maintenance.", kind="boolean"),
        "quarantined": Filter("quarantined", "In quarantine.", kind="boolean"),
        "rack": Filter("rack__name", "Name of the rack."),
        "connection": Filter("connection__name", "Name of the connection."),
        "label": Filter(lambda value: _label(value), "key=value; several are either-or."),
    }

    def rows(self) -> QuerySet[Any]:
        rows = Server.objects.select_related("rack__site", "connection", "bmc")
        if "q" in self.request.query_params:
            # Searching the ports would repeat a server for each of them.
            rows = rows.distinct()
        rows = rows.prefetch_related("claims__tenant")
        if self.action == "list":
            return rows
        return rows.prefetch_related("interfaces__link__fabric", "gpus", "drives")

    def _server(self, name: str) -> Server:
        found: Server = self.one(self.get_queryset().exclude(state="retired"), name=name)
        return found

    def _again(self, server: Server, status: int = 202) -> Response:
        return self.answer(self.one(pk=server.pk), status)

    def retrieve(self, request: Request, name: str) -> Response:
        return self.answer(self._server(name))

    @extend_schema(
        request=ServerBody, responses={201: ServerDetailSerializer}, parameters=[IDEMPOTENCY]
    )
    def create(self, request: Request) -> Response:
        """Register a server with its BMC and ports."""
        self.require("create", Server)
        values = self.body(ServerBody)
        values["connection"] = _connection(values.get("connection"))
        name = values.pop("name")
        return self.created(lambda: self.one(pk=servers.enroll(self.actor, name, **values).pk))

    @extend_schema(request=ServerChange, responses=ServerDetailSerializer)
    def partial_update(self, request: Request, name: str) -> Response:
        """Set labels, or give the BMC other settings and credentials."""
        server = self._server(name)
        self.require("change", server)
        values = self.body(ServerChange)
        if "bmc" in values:
            bmc = values["bmc"]
            given = {key: bmc[key] for key in ("username", "password") if bmc.get(key)}
            kept = bmcs.kept_settings(server) if hasattr(server, "bmc") else {}
            bmcs.set_bmc(
                server,
                self.actor,
                bmc["driver"],
                bmc.get("address", kept.get("address", "")),
                given,
                bmc.get("config", kept.get("config")),
            )
        if "labels" in values:
            servers.set_labels(server, values["labels"], self.actor)
        return self._again(server, 200)

    @verb("servers_inspect", Nothing, ServerDetailSerializer)
    def inspect(self, request: Request, name: str) -> Response:
        server = self._server(name)
        self.require("inspect", server)
        self.body(Nothing)
        if not hasattr(server, "bmc"):
            raise NotAllowed(f"{server} has no BMC recorded, so it cannot be inspected.")
        inspections.start(server, self.actor)
        return self._again(server)

    @verb("servers_power", PowerBody, ServerDetailSerializer)
    def power(self, request: Request, name: str) -> Response:
        """Switch the power by hand; refused while an operation is active on the server."""
        server = self._server(name)
        self.require("power", server)
        servers.set_power(server, self.body(PowerBody)["state"], self.actor)
        return self._again(server)

    @verb("servers_maintenance", MaintenanceBody, ServerDetailSerializer)
    def maintenance(self, request: Request, name: str) -> Response:
        server = self._server(name)
        self.require("maintenance", server)
        values = self.body(MaintenanceBody)
        servers.set_maintenance(
            server, values["on"], self.actor, values.get("reason", ""), values.get("until")
        )
        return self._again(server)

    @verb("servers_quarantine", FlagBody, ServerDetailSerializer)
    def quarantine(self, request: Request, name: str) -> Response:
        server = self._server(name)
        self.require("quarantine", server)
        values = self.body(FlagBody)
        servers.set_quarantine(server, values["on"], self.actor, values.get("reason", ""))
        return self._again(server)

    @verb("servers_declare_blank", TypedName, ServerDetailSerializer)
    def declare_blank(self, request: Request, name: str) -> Response:
        """Vouch that the drives of an enrolled server hold nobody's data."""
        server = self._server(name)
        self.require("declare blank", server)
        servers.declare_blank(server, self.actor, self.body(TypedName)["name"])
        return self._again(server)

    @verb("servers_retire", TypedName, ServerDetailSerializer)
    def retire(self, request: Request, name: str) -> Response:
        server = self._server(name)
        self.require("retire", server)
        servers.retire(server, self.actor, self.body(TypedName)["name"])
        return self._again(server)

    @verb("servers_test_connection", Nothing, TestResult, 200)
    def test_saved(self, request: Request, name: str) -> Response:
        """Try the stored settings and credentials now."""
        server = self._server(name)
        self.require("test connection", server)
        self.body(Nothing)
        if not hasattr(server, "bmc"):
            raise NotAllowed(f"{server} has no BMC recorded.")
        try:
            problems = bmcs.driver_of(server.bmc).check()
        except DriverError as error:
            problems = [error.message]
        return _tested(problems)

    @verb("servers_test_unsaved", TestBody, TestResult, 200)
    def test_unsaved(self, request: Request) -> Response:
        """Try settings before they are saved; nothing is kept."""
        self.require("test connection", Server)
        values = self.body(TestBody)
        driver_settings.require_kind("bmc", values["driver"])
        connection = _connection(values.get("connection"))
        offered = {
            **bmcs.connection_values(connection),
            "host": values.get("engine_id", "").rpartition("/")[2],
            **{key: values[key] for key in ("address", "username", "password") if key in values},
            **values.get("config", {}),
        }
        known = bmcs.setting_names(values["driver"])
        given = {key: value for key, value in offered.items() if key in known}
        return _tested(bmcs.test_connection(values["driver"], given))


def _tested(problems: list[str]) -> Response:
    return Response({"usable": not problems, "problems": problems})


def _connection(name: str | None) -> KubernetesConnection | None:
    if not name:
        return None
    found = KubernetesConnection.objects.filter(name=name).first()
    if found is None:
        raise Invalid({"connection": [f"There is no connection called {name}."]})
    return found


def _label(text: str) -> Q:
    key, mark, value = text.partition("=")
    if not mark:
        raise ValueError("Give key=value.")
    # A plain `labels__<key>` would read some keys as lookups.
    return Q(Exact(KeyTextTransform(key, "labels"), Value(value)))
