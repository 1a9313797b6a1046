"""BMCs that misbehave, as seen in the field: what each defect costs, and what it must not cost."""

from __future__ import annotations

import gc
import os
import time

import pytest
from aiohttp import web

from gpucloud.drivers import DriverError
from inventory.drivers.redfish import Redfish
from inventory.drivers.redfish_session import close_sessions
from tests.drivers.stub_redfish import (
    EJECT,
    INSERT,
    RESET,
    ROOT,
    SESSIONS,
    SLOT,
    SYSTEM,
    StubBmc,
)

ISO = "http://127.0.0.1:9/agent.iso"


@pytest.fixture
def stub():
    return StubBmc()


@pytest.fixture
def driver(stub, serve):
    peer = serve(stub.app)
    values = {"address": peer.url, "username": "admin", "password": "right", "read_timeout": 0.5}
    yield Redfish(Redfish.Config.from_dict(values))
    close_sessions()


def answer(status, body=None, **headers):
    """A maker of one answer; `body` may be JSON, or text that is sent as it is."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, str):
        return lambda: web.Response(status=status, text=body, headers=headers)
    if body is None:
        return lambda: web.Response(status=status, headers=headers)
    return lambda: web.json_response(body, status=status, headers=headers)


def failure(call, *arguments):
    with pytest.raises(DriverError) as error:
        call(*arguments)
    return error.value


def error_body(code, message=None, *extended):
    error = {"code": code, "@Message.ExtendedInfo": list(extended)}
    return {"error": error | ({"message": message} if message is not None else {})}


@pytest.mark.parametrize(
    "body",
    [
        error_body("Base.1.0.GeneralError"),
        "",
        [{"code": "Base.1.0.GeneralError"}],
        {"error": None},
        {"error": {"code": None, "message": None, "@Message.ExtendedInfo": {"Message": "no"}}},
        "<html>400</html>",
    ],
)
def test_whatever_an_error_body_is_a_driver_error_comes_out(stub, driver, body):
    stub.say("POST", INSERT, *[answer(400, body)] * 4)
    error = failure(driver.media, ISO)
    assert error.code == "BMC_ERROR" and error.permanent and "400" in error.message


def test_html_with_status_200_is_told_with_a_snippet(stub, driver):
    stub.say("GET", SYSTEM, answer(200, "<html><body>Login</body></html>"))
    error = failure(driver.power)
    assert error.code == "BMC_ERROR" and "<html>" in error.message


def test_two_documents_in_one_body_are_refused(stub, driver):
    stub.say("GET", SYSTEM, answer(200, '{"error":{}}{"PowerState":"On"}'))
    assert failure(driver.power).code == "BMC_ERROR"


def test_a_power_state_nobody_knows_is_unknown_rather_than_off(stub, driver):
    for word in ("Reset", "PoweringOff", None, 3):
        stub.tree[SYSTEM]["PowerState"] = word
        assert driver.power().power == "unknown"


def test_a_202_that_asks_to_wait_is_not_waited_for(stub, driver):
    stub.say("POST", RESET, answer(202, {}, Retry_After="1", Location="/redfish/v1/T/1"))
    started = time.monotonic()
    driver.set_power("on")
    assert time.monotonic() - started < 1


def test_without_allowable_values_only_target_states_are_sent(stub, driver):
    driver.set_power("on")
    driver.set_power("off")
    assert [body for _, _, body, _ in stub.sent("POST", "Reset")] == [
        {"ResetType": "On"},
        {"ResetType": "ForceOff"},
    ]


def test_a_reset_type_the_bmc_does_not_list_is_unsupported(stub, driver):
    reset = stub.tree[SYSTEM]["Actions"]["#ComputerSystem.Reset"]
    reset["ResetType@Redfish.AllowableValues"] = ["GracefulShutdown"]
    error = failure(driver.set_power, "on")
    assert error.code == "BMC_UNSUPPORTED" and error.permanent
    assert stub.sent("POST", "Reset") == []


def test_a_slow_write_is_sent_once_and_a_slow_read_twice(stub, driver):
    driver.power()
    stub.delay = {("POST", RESET): 0.8}
    assert failure(driver.set_power, "on").code == "BMC_TIMEOUT"
    assert len(stub.sent("POST", "Reset")) == 1
    stub.heard.clear()
    stub.delay = {("GET", SYSTEM): 0.8}
    assert failure(driver.power).code == "BMC_TIMEOUT"
    assert len(stub.sent("GET", SYSTEM)) == 2


def test_a_server_error_is_read_twice_and_written_once(stub, driver):
    stub.say("GET", SYSTEM, answer(503), None)
    assert driver.power().power == "off"
    stub.say("POST", RESET, answer(503, error_body("x.SYS518", "SYS518: not ready")))
    error = failure(driver.set_power, "on")
    assert not error.permanent and len(stub.sent("POST", "Reset")) == 1


def test_a_changed_system_is_never_overwritten_without_its_etag(stub, driver):
    stub.say("PATCH", SYSTEM, *[answer(412, error_body("Base.1.18.PreconditionFailed"))] * 9)
    error = failure(driver.boot_from, "cd")
    assert not error.permanent
    assert all(headers.get("If-Match") for _, _, _, headers in stub.sent("PATCH"))
    assert len(stub.sent("PATCH")) <= 4


def test_a_boot_device_that_is_not_kept_is_told(stub, driver):
    stub.say("PATCH", SYSTEM, answer(200, {}))
    assert failure(driver.boot_from, "cd").code == "BOOT_IGNORED"


def test_an_override_that_needs_a_target_is_cleared_anyway(stub, driver):
    stub.tree[SYSTEM]["Boot"]["BootSourceOverrideEnabled"] = "Once"
    stub.say("PATCH", SYSTEM, answer(400, error_body("iLO.2.x.Bad", "no")), None)
    driver.boot_from("none")
    assert stub.tree[SYSTEM]["Boot"]["BootSourceOverrideEnabled"] == "Disabled"


def test_a_bmc_in_post_is_a_passing_error(stub, driver):
    code = "iLO.2.x.UnableToModifyDuringSystemPOST"
    stub.say("PATCH", SYSTEM, answer(400, error_body(code, "In POST.", {"MessageId": code})))
    assert not failure(driver.boot_from, "cd").permanent


def test_an_endless_answer_is_cut_off(stub, driver):
    stub.say("GET", SYSTEM, *[answer(200, "x" * (9 << 20))] * 2)
    error = failure(driver.power)
    assert error.code == "BMC_ERROR" and "large" in error.message


def test_an_answer_that_drips_is_cut_off_in_time(stub, driver):
    driver.power()
    stub.drips = True
    started = time.monotonic()
    assert failure(driver.power).code == "BMC_TIMEOUT"
    assert time.monotonic() - started < 4


def test_a_forked_child_leaves_the_session_to_its_parent(stub, driver):
    driver.power()
    child = os.fork()
    if child == 0:
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    assert len(stub.sessions) == 1 and stub.sent("DELETE") == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_to_another_host_is_not_followed(stub, driver, status):
    driver.power()
    stub.say("GET", SYSTEM, answer(status, Location="http://127.0.0.1:9/redfish/v1/Systems/1"))
    error = failure(driver.power)
    assert error.code == "BMC_ERROR" and error.permanent and "127.0.0.1:9" in error.message


def test_a_redirect_on_the_bmc_itself_is_followed(stub, driver):
    stub.say("GET", SYSTEM, answer(308, Location=f"{SYSTEM}/"), None)
    assert driver.power().power == "off"


def test_a_redirected_write_is_not_followed(stub, driver):
    stub.say("POST", RESET, answer(307, Location=RESET))
    assert failure(driver.set_power, "on").code == "BMC_ERROR"
    assert len(stub.sent("POST", "Reset")) == 1


def test_links_to_other_hosts_are_not_visited(stub, driver):
    stub.tree[f"{SYSTEM}/VirtualMedia"]["Members"] = [{"@odata.id": "https://127.0.0.1:9/x"}]
    assert failure(driver.media, ISO).permanent


def test_a_wrong_password_counts_once_at_the_bmc(stub, driver):
    stub.say("POST", SESSIONS, *[answer(401, error_body("Base.1.18.NoValidSession"))] * 9)
    error = failure(driver.power)
    assert error.code == "BMC_LOGIN" and error.permanent
    assert len(stub.sent("POST", SESSIONS)) == 1
    assert not any("Authorization" in headers for _, _, _, headers in stub.heard)


def test_a_locked_account_waits_instead_of_asking_for_another_password(stub, driver):
    body = error_body("x", "The account is locked.")
    stub.say("POST", SESSIONS, answer(403, body))
    error = failure(driver.power)
    assert error.code == "BMC_LOCKED" and not error.permanent and error.wait


def test_too_many_sessions_are_busy_rather_than_a_wrong_password(stub, driver):
    stub.say("POST", SESSIONS, answer(503, error_body("IDRAC.2.8.RAC0218", "Too many sessions.")))
    error = failure(driver.power)
    assert error.code == "BMC_ERROR" and not error.permanent and error.wait


def test_basic_is_used_where_there_are_no_sessions(stub, driver):
    stub.say("POST", SESSIONS, answer(404))
    assert driver.power().power == "off"
    assert stub.heard[-1][3]["Authorization"].startswith("Basic ")


def test_an_expired_session_is_renewed_once_even_for_a_write(stub, driver):
    driver.power()
    stub.say("POST", RESET, answer(401), None)
    driver.set_power("on")
    assert len(stub.sent("POST", SESSIONS)) == 2
    assert len(stub.sent("POST", "Reset")) == 2


def test_a_session_is_ended_even_if_its_address_names_another_host(stub, driver):
    driver.power()
    assert len(stub.sessions) == 1
    close_sessions()
    assert stub.sessions == set()


def test_media_that_need_a_transfer_protocol_get_one(stub, driver):
    parameter = {"MessageId": "x", "RelatedProperties": ["#/TransferProtocolType"]}
    missing = error_body("Base.1.5.ActionParameterMissing", "missing", parameter)
    stub.say("POST", INSERT, answer(400, missing), None)
    driver.media(ISO)
    assert stub.sent("POST", "InsertMedia")[-1][2]["TransferProtocolType"] == "HTTP"


def test_an_image_name_that_stays_after_an_eject_does_not_count(stub, driver):
    stub.tree[SLOT] |= {"Inserted": True, "Image": ISO, "ConnectedVia": "NotConnected"}
    driver.media(None)
    assert stub.sent("POST", "EjectMedia") == []


def test_eject_sends_an_empty_object_where_it_is_wanted(stub, driver):
    stub.tree[SLOT] |= {"Inserted": True, "Image": ISO}
    stub.say("POST", EJECT, answer(415), None)
    driver.media(None)
    assert stub.sent("POST", "EjectMedia")[-1][2] == {}


def test_several_systems_need_one_named_but_a_gpu_baseboard_is_none(stub, driver):
    members = stub.tree[f"{ROOT}/Systems"]["Members"]
    members.append({"@odata.id": f"{ROOT}/Systems/HGX_Baseboard_0"})
    assert driver.power().power == "off"
    members.append({"@odata.id": f"{ROOT}/Systems/2"})
    close_sessions()
    assert "2 systems" in failure(driver.power).message


# Inspection over what BMCs leave out.


def put(stub, path, **content):
    stub.tree[path] = {"@odata.id": path, "Id": path.rpartition("/")[2], "Name": "x", **content}


def refs(*paths):
    return [{"@odata.id": path} for path in paths]


def test_an_empty_system_is_inspected_as_unknown_not_as_invented(stub, driver):
    seen = driver.inspect()
    assert (seen.model, seen.uuid, seen.memory_gib, seen.health) == (None, None, None, None)
    assert seen.gpus == seen.ports == seen.drives == ()


def test_one_failing_member_becomes_a_warning_and_the_others_are_read(stub, driver):
    below = f"{SYSTEM}/Processors"
    stub.tree[SYSTEM]["Processors"] = {"@odata.id": below}
    put(stub, below, Members=refs(f"{below}/GPU1", f"{below}/GPU2"))
    put(stub, f"{below}/GPU2", ProcessorType="GPU", Model="NVIDIA H100", SerialNumber=" 12 ")
    stub.say("GET", f"{below}/GPU1", *[answer(503)] * 2)
    seen = driver.inspect()
    assert [(gpu.model, gpu.serial) for gpu in seen.gpus] == [("NVIDIA H100", "12")]
    assert len(seen.warnings) == 1 and "GPU1" in seen.warnings[0]


def test_collections_are_read_page_by_page(stub, driver):
    below = f"{SYSTEM}/EthernetInterfaces"
    stub.tree[SYSTEM]["EthernetInterfaces"] = {"@odata.id": below}
    more = f"{SYSTEM}/MoreInterfaces"
    put(stub, below, Members=refs(f"{below}/1"), **{"Members@odata.nextLink": more})
    put(stub, more, Members=refs(f"{below}/2", f"{below}/3"))
    for name, mac in (("1", "AA-BB-CC-00-00-01"), ("2", "aabbcc000002"), ("3", "")):
        put(stub, f"{below}/{name}", MACAddress=mac, SpeedMbps="", LinkStatus="NoLink")
    ports = driver.inspect().ports
    assert [port.mac for port in ports] == ["aa:bb:cc:00:00:01", "aa:bb:cc:00:00:02"]
    assert [(port.name, port.speed_mbps, port.link) for port in ports] == [
        ("1", None, "down"),
        ("2", None, "down"),
    ]


def test_ports_that_only_an_adapter_knows_are_found(stub, driver):
    chassis, functions = f"{ROOT}/Chassis/1", f"{ROOT}/Chassis/1/NetworkAdapters/1/F"
    adapters = f"{chassis}/NetworkAdapters"
    stub.tree[SYSTEM]["Links"] = {"Chassis": refs(chassis)}
    put(stub, chassis, NetworkAdapters={"@odata.id": adapters})
    put(stub, adapters, Members=refs(f"{adapters}/1"))
    put(stub, f"{adapters}/1", NetworkDeviceFunctions={"@odata.id": functions})
    put(stub, functions, Members=refs(f"{functions}/A", f"{functions}/B"))
    put(stub, f"{functions}/A", Ethernet={"PermanentMACAddress": "AA:BB:CC:00:00:01"})
    put(stub, f"{functions}/B", InfiniBand={"PermanentPortGUID": "0x1122334455667788"})
    assert [(port.name, port.mac, port.kind) for port in driver.inspect().ports] == [
        ("A", "aa:bb:cc:00:00:01", "ethernet"),
        ("B", "11:22:33:44:55:66:77:88", "infiniband"),
    ]


def test_gpus_of_a_baseboard_that_is_a_system_of_its_own_are_found(stub, driver):
    board = f"{ROOT}/Systems/HGX_Baseboard_0"
    stub.tree[f"{ROOT}/Systems"]["Members"] += refs(board)
    put(stub, board, Processors={"@odata.id": f"{board}/Processors"})
    put(stub, f"{board}/Processors", Members=refs(f"{board}/Processors/GPU_0"))
    put(stub, f"{board}/Processors/GPU_0", ProcessorType="GPU", Model="H100", UUID="76de")
    assert [gpu.uuid for gpu in driver.inspect().gpus] == ["76de"]


def test_gpus_are_found_as_pcie_devices_and_the_bmcs_own_graphics_is_not_one(stub, driver):
    names = [f"{SYSTEM}/PCIeDevices/{n}" for n in (1, 2)]
    stub.tree[SYSTEM]["PCIeDevices"] = refs(*names)
    for name, vendor in zip(names, ("0x10DE", "0x102B"), strict=True):
        put(stub, name, Model="card", Links={"PCIeFunctions": refs(f"{name}/F0")})
        put(stub, f"{name}/F0", DeviceClass="DisplayController", VendorId=vendor)
    assert [gpu.model for gpu in driver.inspect().gpus] == ["card"]


def test_a_dell_is_known_by_its_service_tag(stub, driver):
    stub.tree[SYSTEM] |= {"Manufacturer": "Dell Inc.", "SKU": "F54P1G3"}
    assert driver.inspect().serial == "F54P1G3"
