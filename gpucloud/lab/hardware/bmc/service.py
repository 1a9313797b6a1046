"""The HTTP side of all BMCs: which BMC a port belongs to, faults, logins, ETags, dispatch."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Callable, Mapping

from aiohttp import web

from gpucloud.lab.hardware.bmc import chassis, services, storage, system, writes
from gpucloud.lab.hardware.bmc.accounts import Refused, SessionsExhausted
from gpucloud.lab.hardware.bmc.bmc import ROOT, Bmc
from gpucloud.lab.hardware.bmc.parts import Json, collection, error
from gpucloud.lab.hardware.bmc.router import Router
from gpucloud.lab.hardware.bmc.writes import Answer, Done

DROP_WALL_SECONDS = 60.0
OPEN_PATHS = ("/redfish", ROOT)
SESSION_PATHS = (services.SESSIONS, f"{services.SESSIONS}/Members")

SYSTEM, CHASSIS = f"{ROOT}/Systems/*", f"{ROOT}/Chassis/*"

READS: Router[Callable[..., Json | None]] = Router(
    {
        "/redfish": lambda bmc: {"v1": f"{ROOT}/"},
        ROOT: chassis.root,
        f"{ROOT}/Systems": lambda bmc: _only("Systems", "ComputerSystem", bmc.names.system),
        f"{ROOT}/Chassis": lambda bmc: _only("Chassis", "Chassis", bmc.names.chassis),
        f"{ROOT}/Managers": lambda bmc: _only("Managers", "Manager", bmc.names.manager),
        f"{ROOT}/Managers/*": chassis.manager,
        SYSTEM: system.system,
        f"{SYSTEM}/Processors": system.processors,
        f"{SYSTEM}/Processors/*": system.processor,
        f"{SYSTEM}/Processors/*/EnvironmentMetrics": system.gpu_environment,
        f"{SYSTEM}/Memory": system.memory,
        f"{SYSTEM}/Memory/*": system.dimm,
        f"{SYSTEM}/EthernetInterfaces": system.interfaces,
        f"{SYSTEM}/EthernetInterfaces/*": system.interface,
        f"{SYSTEM}/PCIeDevices": system.pcie_devices,
        f"{SYSTEM}/PCIeDevices/*": system.pcie_device,
        f"{SYSTEM}/VirtualMedia": system.virtual_media,
        f"{SYSTEM}/VirtualMedia/*": system.media_slot,
        f"{SYSTEM}/SecureBoot": system.secure_boot,
        f"{SYSTEM}/LogServices": system.log_services,
        f"{SYSTEM}/LogServices/SEL": system.log_service,
        f"{SYSTEM}/LogServices/SEL/Entries": system.log_entries,
        f"{SYSTEM}/LogServices/SEL/Entries/*": system.log_entry,
        f"{SYSTEM}/Storage": storage.storages,
        f"{SYSTEM}/Storage/*": storage.storage,
        f"{SYSTEM}/Storage/*/Volumes": storage.volumes,
        f"{SYSTEM}/Storage/*/Drives/*": storage.drive,
        CHASSIS: chassis.chassis,
        f"{CHASSIS}/NetworkAdapters": chassis.adapters,
        f"{CHASSIS}/NetworkAdapters/*": chassis.adapter,
        f"{CHASSIS}/NetworkAdapters/*/Ports": chassis.ports,
        f"{CHASSIS}/NetworkAdapters/*/Ports/*": chassis.port,
        f"{CHASSIS}/Sensors": chassis.sensors,
        f"{CHASSIS}/Sensors/*": chassis.sensor,
        f"{CHASSIS}/PowerSubsystem": chassis.power_subsystem,
        f"{CHASSIS}/PowerSubsystem/PowerSupplies": chassis.power_supplies,
        f"{CHASSIS}/PowerSubsystem/PowerSupplies/*": chassis.power_supply,
        f"{CHASSIS}/ThermalSubsystem": chassis.thermal_subsystem,
        f"{CHASSIS}/Power": chassis.power,
        f"{CHASSIS}/Thermal": chassis.thermal,
        f"{ROOT}/SessionService": services.session_service,
        services.SESSIONS: services.sessions,
        f"{services.SESSIONS}/*": services.session,
        f"{ROOT}/AccountService": services.account_service,
        services.ACCOUNTS: services.accounts,
        f"{services.ACCOUNTS}/1": services.account,
        f"{ROOT}/EventService": services.event_service,
        services.SUBSCRIPTIONS: services.subscriptions,
        f"{services.SUBSCRIPTIONS}/*": services.subscription,
    }
)

POSTS: Router[Callable[..., Done]] = Router(
    {
        f"{SYSTEM}/Actions/ComputerSystem.Reset": writes.reset,
        f"{SYSTEM}/VirtualMedia/*/Actions/VirtualMedia.InsertMedia": writes.insert_media,
        f"{SYSTEM}/VirtualMedia/*/Actions/VirtualMedia.EjectMedia": writes.eject_media,
        f"{SYSTEM}/LogServices/SEL/Actions/LogService.ClearLog": writes.clear_log,
        services.SESSIONS: writes.open_session,
        services.SUBSCRIPTIONS: writes.subscribe,
        f"{ROOT}/EventService/Actions/EventService.SubmitTestEvent": writes.send_test_event,
    }
)

PATCHES: Router[Callable[..., Done]] = Router(
    {
        SYSTEM: writes.change_system,
        f"{SYSTEM}/SecureBoot": writes.change_secure_boot,
        f"{services.ACCOUNTS}/1": writes.change_account,
    }
)

DELETES: Router[Callable[..., Done]] = Router(
    {
        f"{services.SESSIONS}/*": writes.close_session,
        f"{services.SUBSCRIPTIONS}/*": writes.unsubscribe,
    }
)


def build_service(bmcs: Mapping[int, Bmc]) -> web.Application:
    """One application for all BMCs, which are told apart by the port a request came in on."""
    service = Service(bmcs)
    app = web.Application(client_max_size=1 << 20)
    app.router.add_route("*", "/{path:.*}", service.serve)
    return app


class Service:
    def __init__(self, bmcs: Mapping[int, Bmc]) -> None:
        self._bmcs = bmcs

    async def serve(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if transport is None:
            raise web.HTTPServiceUnavailable
        bmc = self._bmcs[transport.get_extra_info("sockname")[1]]
        fault = await self._suffer(bmc, request)
        if fault is not None:
            return fault
        path = request.path.rstrip("/") or "/"
        try:
            if bmc.server.faults.get("refuse_login"):
                raise Refused
            if not self._is_open(request, path):
                self._authorise(bmc, request)
            return await self._answer(bmc, request, path)
        except Refused:
            return _refusal(
                Answer(401, "InsufficientPrivilege", "The login is missing or wrong."),
                {"WWW-Authenticate": 'Basic realm="Redfish"'},
            )
        except SessionsExhausted:
            message = "The session limit is reached; close a session or wait."
            return _refusal(Answer(503, "SessionLimitExceeded", message), {"Retry-After": "30"})
        except Answer as answer:
            return _refusal(answer)

    async def _suffer(self, bmc: Bmc, request: web.Request) -> web.StreamResponse | None:
        """What the server's faults do to this request before the BMC gets to see it."""
        faults = bmc.server.faults
        if faults.get("no_reply"):
            return _hang_up(request)
        if faults.get("delay"):
            await asyncio.sleep(float(faults["delay"]))
        if random.random() < float(faults.get("drop") or 0):
            await asyncio.sleep(DROP_WALL_SECONDS)
            return _hang_up(request)
        if random.random() < float(faults.get("error") or 0):
            message = "The service is temporarily unavailable."
            return _refusal(Answer(503, "ServiceTemporarilyUnavailable", message, "30"))
        return None

    def _is_open(self, request: web.Request, path: str) -> bool:
        if request.method == "GET":
            return path in OPEN_PATHS
        return request.method == "POST" and path in SESSION_PATHS

    def _authorise(self, bmc: Bmc, request: web.Request) -> None:
        headers = request.headers
        bmc.accounts.authorise(headers.get("X-Auth-Token", ""), headers.get("Authorization", ""))

    async def _answer(self, bmc: Bmc, request: web.Request, path: str) -> web.Response:
        if request.method in ("GET", "HEAD"):
            return _read(bmc, request, path)
        if request.method == "DELETE":
            return self._delete(bmc, path)
        routers = {"POST": POSTS, "PATCH": PATCHES}
        found = routers[request.method].find(path) if request.method in routers else None
        if found is None:
            raise self._unserved(bmc, path)
        handler, stars = found
        _check_ids(bmc, path)
        body = await _body(request)
        if request.method == "PATCH":
            _check_etag(bmc, request, path)
        content, headers = handler(bmc, body, *stars[_skip(path) :])
        if request.method == "PATCH":
            return _read(bmc, request, path)
        if content is None:
            return web.Response(status=204)
        return web.json_response(content, status=201, headers=headers)

    def _delete(self, bmc: Bmc, path: str) -> web.Response:
        found = DELETES.find(path)
        if found is None:
            raise self._unserved(bmc, path)
        handler, stars = found
        handler(bmc, *stars)
        return web.Response(status=204)

    def _unserved(self, bmc: Bmc, path: str) -> Answer:
        if READS.find(path) is None:
            return _no_such(path)
        return Answer(405, "OperationNotAllowed", "The method is not allowed here.")


def _read(bmc: Bmc, request: web.Request, path: str) -> web.Response:
    content = _resource(bmc, path)
    if content is None:
        raise _no_such(path)
    etag = _etag(content)
    headers = {"ETag": etag, "OData-Version": "4.0", "Cache-Control": "no-cache"}
    if request.method == "GET" and request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers=headers)
    return web.json_response({**content, "@odata.etag": etag}, headers=headers)


def _resource(bmc: Bmc, path: str) -> Json | None:
    found = READS.find(path)
    if found is None:
        return None
    build, stars = found
    _check_ids(bmc, path)
    return build(bmc, *stars[_skip(path) :])


def _skip(path: str) -> int:
    """The first star of these is the one system, chassis or manager; handlers know it."""
    head = path.removeprefix(f"{ROOT}/").split("/")
    return 1 if head[0] in ("Systems", "Chassis", "Managers") and len(head) > 1 else 0


def _check_ids(bmc: Bmc, path: str) -> None:
    head = path.removeprefix(f"{ROOT}/").split("/")
    known = {
        "Systems": bmc.names.system,
        "Chassis": bmc.names.chassis,
        "Managers": bmc.names.manager,
    }
    if len(head) > 1 and head[0] in known and head[1] != known[head[0]]:
        raise _no_such(path)


def _etag(content: Json) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f'"{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"'


def _check_etag(bmc: Bmc, request: web.Request, path: str) -> None:
    wanted = request.headers.get("If-Match")
    if not wanted or wanted == "*":
        return
    content = _resource(bmc, path)
    if content is None or wanted.removeprefix("W/") != _etag(content):
        raise Answer(412, "PreconditionFailed", "The resource has changed since it was read.")


async def _body(request: web.Request) -> Json:
    raw = await request.read()
    if not raw:
        return {}
    try:
        body = json.loads(raw)
    except ValueError as bad:
        raise Answer(400, "MalformedJSON", "The body is not JSON.") from bad
    if not isinstance(body, dict):
        raise Answer(400, "UnrecognizedRequestBody", "The body is not a JSON object.")
    return body


def _only(where: str, kind: str, member: str) -> Json:
    return collection(f"{ROOT}/{where}", kind, [member])


def _no_such(path: str) -> Answer:
    return Answer(404, "ResourceMissingAtURI", f"There is nothing at {path}.", path)


def _refusal(answer: Answer, headers: Mapping[str, str] | None = None) -> web.Response:
    body = error(answer.code, answer.message, *answer.arguments)
    return web.json_response(body, status=answer.status, headers=headers)


def _hang_up(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=503)
