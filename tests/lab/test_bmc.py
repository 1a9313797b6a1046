"""The lab's BMCs, mostly as sushy sees them over https with a session."""

from __future__ import annotations

import asyncio
import json
import time
import warnings

import aiohttp
import pytest
import sushy
from aiohttp import web
from sushy import auth, exceptions

from gpucloud.lab.hardware.bmc import accounts
from tests.lab.hardware_rig import SERVER, Rig, make_data

warnings.filterwarnings("ignore", message="Unverified HTTPS request")
DGX = "dgx-01"
SYSTEM = "/Systems/System.Embedded.1"


@pytest.fixture
async def rig(tmp_path, monkeypatch):
    rig = Rig(make_data(tmp_path, monkeypatch))
    await rig.start()
    yield rig
    await rig.stop()


def connect(rig, server=SERVER, password=None):
    username, right = rig.bmc_login(server)
    login = auth.SessionAuth(username, password or right)
    url = rig.doors[f"bmc-{server}"]
    return sushy.Sushy(url, auth=login, verify=False, server_side_retries=1)


async def with_sushy(rig, use, server=SERVER):
    """Run blocking sushy code beside the lab's event loop, with one session closed at the end."""

    def work():
        root = connect(rig, server)
        try:
            return use(root)
        finally:
            root._auth.close()

    return await asyncio.to_thread(work)


def wait_for_power(system, state):
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        system.refresh(force=True)
        if system.power_state == state:
            return True
        time.sleep(0.02)
    return False


async def test_a_session_is_opened_and_closed(rig):
    def use(root):
        assert root.get_system().uuid == rig.server.facts.uuid
        return root.get_session_service().sessions.members_identities

    assert await with_sushy(rig, use) == ("/redfish/v1/SessionService/Sessions/1",)
    _, sessions = await rig.bmc("GET", "/SessionService/Sessions")
    assert sessions["Members"] == []


async def test_power_goes_on_and_off(rig):
    def use(root):
        system = root.get_system()
        assert system.power_state == sushy.POWER_STATE_OFF
        system.reset_system(sushy.RESET_ON)
        assert wait_for_power(system, sushy.POWER_STATE_ON)
        system.reset_system(sushy.RESET_FORCE_OFF)
        assert wait_for_power(system, sushy.POWER_STATE_OFF)

    await with_sushy(rig, use)
    acts = [(act["actor"], act["before"], act["after"]) for act in rig.acts("power")]
    assert acts == [(f"bmc:{SERVER}", "off", "on"), (f"bmc:{SERVER}", "on", "off")]


async def test_the_boot_override_reads_back(rig):
    def use(root):
        system = root.get_system()
        system.set_system_boot_options(
            target=sushy.BOOT_SOURCE_TARGET_CD, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE
        )
        system.refresh(force=True)
        return system.boot.target, system.boot.enabled

    wanted = (sushy.BOOT_SOURCE_TARGET_CD, sushy.BOOT_SOURCE_ENABLED_ONCE)
    assert await with_sushy(rig, use) == wanted


async def test_media_is_inserted_and_ejected(rig):
    url = "https://127.0.0.1:9/key/agent.iso"

    def use(root):
        slots = root.get_system().virtual_media.get_members()
        cd = next(slot for slot in slots if sushy.VIRTUAL_MEDIA_CD in slot.media_types)
        cd.insert_media(url)
        cd.refresh(force=True)
        assert (cd.inserted, cd.image) == (True, url)
        cd.eject_media()
        cd.refresh(force=True)
        assert (cd.inserted, cd.image) == (False, None)
        return [slot.identity for slot in slots]

    assert await with_sushy(rig, use) == ["Cd", "USBStick"]
    # A boot key is a secret and stands in the path.
    assert "key/agent.iso" not in json.dumps(rig.acts("media"))


async def test_processors_show_eight_gpus(rig):
    def use(root):
        found = root.get_system().processors.get_members()
        gpus = [one for one in found if one.processor_type == sushy.PROCESSOR_TYPE_GPU]
        return [(gpu.model, gpu.json["SerialNumber"]) for gpu in gpus]

    gpus = await with_sushy(rig, use, DGX)
    assert len(gpus) == 8
    assert gpus[0] == ("NVIDIA H100 80GB HBM3", "165352300100")


async def test_interfaces_drives_and_cables_are_listed(rig):
    def use(root):
        system = root.get_system()
        drives = [drive for one in system.storage.get_members() for drive in one.drives]
        chassis = root.get_chassis_collection().get_members()[0]
        adapters = chassis.network_adapters.get_members()
        ports = [port for adapter in adapters for port in adapter.ports.get_members()]
        lldp = [port.ethernet.lldp_receive for port in ports]
        return (
            list(system.ethernet_interfaces.summary),
            [(drive.serial_number, drive.capacity_bytes) for drive in drives],
            [(one.system_name, one.port_id) for one in lldp],
            len(chassis.power.power_supplies),
        )

    macs, drives, cables, supplies = await with_sushy(rig, use)
    assert macs == ["52:54:00:10:01:01", "52:54:00:10:01:02"]
    assert drives[0] == ("S6CKNT0W7010001", 960197124096)
    assert cables == [("leaf-1", "swp1"), ("leaf-1", "swp2")]
    assert supplies == 2


async def test_every_link_leads_somewhere(rig):
    seen, todo = set(), ["/redfish/v1"]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        status, body = await rig.bmc("GET", path.removeprefix("/redfish/v1"), server=DGX)
        assert status == 200, path
        todo += [link.partition("#")[0].rstrip("/") for link in links(body)]
    assert len(seen) > 80


def links(value):
    if isinstance(value, dict):
        for key, below in value.items():
            if key == "@odata.id":
                yield below
            else:
                yield from links(below)
    elif isinstance(value, list):
        for below in value:
            yield from links(below)


async def test_a_wrong_password_is_refused(rig):
    def use():
        with pytest.raises(exceptions.AccessError):
            connect(rig, password="wrong")

    await asyncio.to_thread(use)
    assert rig.acts("login")[-1]["after"]["result"] == "refused"


async def test_five_wrong_passwords_lock_the_account_for_a_while(rig, monkeypatch):
    monkeypatch.setattr(accounts, "LOCK_WALL_SECONDS", 0.3)
    for _ in range(5):
        status, _ = await rig.bmc("GET", SYSTEM, login=("admin", "wrong"))
        assert status == 401
    assert (await rig.bmc("GET", SYSTEM))[0] == 401
    await asyncio.sleep(0.35)
    assert (await rig.bmc("GET", SYSTEM))[0] == 200


async def test_a_changed_password_is_the_only_one_that_works(rig):
    status, _ = await rig.bmc("PATCH", "/AccountService/Accounts/1", {"Password": "newpassword"})
    assert status == 200
    assert (await rig.bmc("GET", SYSTEM))[0] == 401
    assert (await rig.bmc("GET", SYSTEM, login=("admin", "newpassword")))[0] == 200


async def test_an_outdated_etag_is_refused(rig):
    _, system = await rig.bmc("GET", SYSTEM)
    etag = {"If-Match": system["@odata.etag"]}
    assert (await rig.bmc("PATCH", SYSTEM, {"AssetTag": "A"}, headers=etag))[0] == 200
    assert (await rig.bmc("PATCH", SYSTEM, {"AssetTag": "B"}, headers=etag))[0] == 412
    _, system = await rig.bmc("GET", SYSTEM)
    assert system["AssetTag"] == "A"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "Explode"}, 400),
        ("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", {"ResetType": "ForceRestart"}, 409),
        ("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset", ["On"], 400),
        ("PATCH", SYSTEM, {"Boot": {"BootSourceOverrideTarget": "Tape"}}, 400),
        ("PATCH", SYSTEM, {"Boot": 3}, 400),
        ("PATCH", SYSTEM, {"PowerState": "On"}, 400),
        ("PATCH", SYSTEM, {"Boot": {"BootSourceOverrideTarget": ["Cd"]}}, 400),
        ("PATCH", f"{SYSTEM}/SecureBoot", {}, 400),
        ("POST", f"{SYSTEM}/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", {}, 400),
        (
            "POST",
            f"{SYSTEM}/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia",
            {"Image": "file:///etc/passwd"},
            400,
        ),
        ("POST", f"{SYSTEM}/VirtualMedia/Tape/Actions/VirtualMedia.EjectMedia", {}, 404),
        ("GET", "/Systems/DGX", None, 404),
        ("GET", f"{SYSTEM}/Processors/none", None, 404),
        ("POST", SYSTEM, {}, 405),
        ("DELETE", SYSTEM, None, 405),
        ("PUT", SYSTEM, {}, 405),
        ("DELETE", "/SessionService/Sessions/9", None, 404),
        ("POST", "/EventService/Subscriptions", {"Destination": "nowhere"}, 400),
        ("POST", "/SessionService/Sessions", {"UserName": "admin"}, 400),
    ],
)
async def test_a_bad_request_is_answered_with_a_redfish_error(rig, method, path, body, status):
    answered, content = await rig.bmc(method, path, body)
    assert answered == status
    assert content["error"]["@Message.ExtendedInfo"][0]["MessageId"].startswith("Base.1.18.")


async def test_other_media_needs_the_first_ejected(rig):
    insert = f"{SYSTEM}/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
    first, second = "http://127.0.0.1:9/a.iso", "http://127.0.0.1:9/b.iso"
    assert (await rig.bmc("POST", insert, {"Image": first}))[0] == 204
    assert (await rig.bmc("POST", insert, {"Image": first}))[0] == 204
    assert (await rig.bmc("POST", insert, {"Image": second}))[0] == 409


async def test_subscribers_hear_of_power(rig):
    heard = []

    async def listen(request):
        heard.append(await request.json())
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/events", listen)
    port = await rig._serve(app, 0)
    wish = {"Destination": f"http://127.0.0.1:{port}/events", "Context": "me"}
    status, subscription = await rig.bmc("POST", "/EventService/Subscriptions", wish)
    assert status == 201
    await rig.reset("On")
    await rig.until(lambda: heard)
    assert heard[0]["Context"] == "me"
    assert "powered on" in heard[0]["Events"][0]["Message"]
    path = f"/EventService/Subscriptions/{subscription['Id']}"
    assert (await rig.bmc("DELETE", path))[0] == 204


async def test_the_event_log_tells_of_power_and_can_be_cleared(rig):
    await rig.reset("On")
    await rig.until(lambda: rig.machine.is_on)
    log = f"{SYSTEM}/LogServices/SEL"
    _, entries = await rig.bmc("GET", f"{log}/Entries")
    assert "power is on" in entries["Members"][0]["Message"]
    assert (await rig.bmc("POST", f"{log}/Actions/LogService.ClearLog", {}))[0] == 204
    _, entries = await rig.bmc("GET", f"{log}/Entries")
    assert entries["Members"] == []


async def test_each_bmc_has_a_certificate_of_its_own_and_keeps_it(rig):
    folder = rig.data / "lab/hardware/tls"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(set(before.values())) == len(before) == 9
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())
    await rig.stop_lab()
    await rig.start_lab()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# Faults.


async def test_hidden_gpus_vanish_from_redfish(rig):
    await rig.door("PUT", f"/servers/{DGX}/faults", {"hidden_gpu": 2})
    _, processors = await rig.bmc("GET", "/Systems/DGX/Processors", server=DGX)
    assert len([m for m in processors["Members"] if "GPU" in m["@odata.id"]]) == 6


async def test_refused_logins_answer_401_to_everything(rig):
    await rig.fault(refuse_login=True)
    assert (await rig.bmc("GET", SYSTEM))[0] == 401
    login = dict(zip(("UserName", "Password"), rig.bmc_login(), strict=True))
    assert (await rig.bmc("POST", "/SessionService/Sessions", login))[0] == 401


async def test_errors_answer_503(rig):
    await rig.fault(error=1)
    assert (await rig.bmc("GET", SYSTEM))[0] == 503


async def test_a_delay_makes_every_answer_wait(rig):
    await rig.fault(delay=0.3)
    began = time.monotonic()
    assert (await rig.bmc("GET", SYSTEM))[0] == 200
    assert time.monotonic() - began >= 0.3


async def test_no_reply_closes_the_connection(rig):
    await rig.fault(no_reply=True)
    with pytest.raises(aiohttp.ClientError):
        await rig.bmc("GET", SYSTEM)


async def test_a_dropped_request_gets_no_answer(rig):
    await rig.fault(drop=1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(rig.bmc("GET", SYSTEM), 0.3)


async def test_the_labs_door_wants_its_token(rig):
    async with (
        aiohttp.ClientSession() as http,
        http.get(rig.doors["lab"] + "/servers") as answer,
    ):
        assert answer.status == 401
