"""What every BmcDriver promises, asked of the fake and of Redfish against the lab's BMCs."""

from __future__ import annotations

import re
import time
import uuid

import pytest

from gpucloud.drivers import ConfigError, DriverError, call_budget
from inventory.drivers import redfish
from inventory.drivers.fake import FakeBmc
from inventory.drivers.redfish import Redfish, RedfishConfig
from inventory.drivers.redfish_session import close_sessions, connect
from tests.drivers.lab import LabProcess

ISO, OTHER_ISO = "http://127.0.0.1:9/first.iso", "http://127.0.0.1:9/other.iso"


class FakeStage:
    def __init__(self):
        self.name = str(uuid.uuid4())
        self.driver = self.login()
        self.server = self.driver.server

    def login(self, **values):
        return FakeBmc(FakeBmc.Config.from_dict({"name": self.name, "gpus": 4, **values}))

    def suffer(self, fault):
        self.server.faults.add(fault)

    def unplug(self):
        self.server.faults.add("unreachable")

    def writes(self, verb):
        return [value for what, value in self.server.writes if what == verb]

    def serials(self):
        return {drive.serial for drive in self.server.facts.drives}


class LabStage:
    def __init__(self, lab, name="bare-metal-2"):
        self.lab, self.name = lab, name
        self.values = {"address": lab.doors[f"bmc-{name}"], **lab.credentials["bmc"][name]}
        self.driver = self.login()
        self._before = {verb: len(self._acts(verb)) for verb in ("power", "boot", "media")}

    def login(self, **values):
        return Redfish(Redfish.Config.from_dict({**self.values, **values}))

    def suffer(self, fault, value=True):
        self.lab.faults(self.name, **{fault: value})

    def unplug(self):
        self.driver = self.login(address="https://127.0.0.1:9")

    def _acts(self, verb):
        return [act["after"] for act in self.lab.acts(f"bmc:{self.name}", verb)]

    def writes(self, verb):
        return self._acts(verb)[self._before[verb] :]

    def serials(self):
        return {drive["serial"] for drive in self.lab.rack[self.name]["drives"]}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = LabProcess(tmp_path_factory.mktemp("lab"))
    yield made
    close_sessions()
    made.close()


def lab_stage(lab, name="bare-metal-2"):
    lab.faults(name)
    stage = LabStage(lab, name)
    stage.driver.set_power("off")
    wait_for(stage, "off")
    stage.driver.boot_from("none")
    stage.driver.media(None)
    return LabStage(lab, name)


@pytest.fixture(params=["fake", "redfish"])
def stage(request):
    if request.param == "fake":
        return FakeStage()
    return lab_stage(request.getfixturevalue("lab"))


@pytest.fixture
def bmc(lab):
    stage = lab_stage(lab)
    yield stage
    lab.faults(stage.name)


@pytest.fixture
def dgx(lab):
    return lab_stage(lab, "dgx-01")


def wait_for(stage, power):
    for _ in range(200):
        seen = stage.driver.power()
        if seen.power == power:
            return seen
        time.sleep(0.01)
    raise AssertionError(f"never {power}: {seen}")


def test_check_of_a_working_bmc_finds_nothing(stage):
    assert stage.driver.check() == []


def test_power_goes_on_and_off_and_each_reading_has_its_time(stage):
    stage.driver.set_power("on")
    seen = wait_for(stage, "on")
    assert seen.at is not None and seen.via == stage.driver.kind and seen.health == "OK"
    stage.driver.set_power("off")
    assert wait_for(stage, "off").at > seen.at


def test_setting_the_power_that_already_is_sends_nothing(stage):
    stage.driver.set_power("off")
    stage.driver.set_power("off")
    assert stage.writes("power") == []


def test_an_ignored_power_change_is_told_by_the_next_reading(stage):
    stage.suffer("ignore_power")
    stage.driver.set_power("on")
    assert stage.driver.power().power == "off"


def test_a_boot_device_is_set_once_and_cleared(stage):
    for _ in range(2):
        stage.driver.boot_from("cd")
    assert len(stage.writes("boot")) == 1
    stage.driver.boot_from("hdd")
    stage.driver.boot_from("pxe")
    stage.driver.boot_from("none")
    stage.driver.boot_from("none")
    assert len(stage.writes("boot")) == 4


def test_media_is_inserted_replaced_and_ejected(stage):
    for url in (ISO, ISO, OTHER_ISO, None, None):
        stage.driver.media(url)
    writes = [str(write) for write in stage.writes("media")]
    assert "first.iso" in writes[0] and any("other.iso" in write for write in writes[1:])
    assert "iso" not in writes[-1]
    assert len(writes) <= 4


def test_ignored_media_are_an_error(stage):
    stage.suffer("ignore_media")
    with pytest.raises(DriverError) as error:
        stage.driver.media(ISO)
    assert error.value.code == "MEDIA_IGNORED" and error.value.hint


def test_inspection_tells_the_hardware_and_invents_nothing(stage):
    seen = stage.driver.inspect()
    assert seen.vendor and seen.model and seen.serial and seen.uuid == seen.uuid.lower()
    assert seen.power == "off" and seen.memory_gib > 0 and seen.warnings == ()
    assert len(seen.gpus) == 4 and len({gpu.serial for gpu in seen.gpus}) == 4
    assert all(gpu.model and gpu.memory_bytes for gpu in seen.gpus)
    assert seen.processors and seen.processors[0]["cores"] == 32
    assert all(re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", port.mac) for port in seen.ports)
    assert {drive.serial for drive in seen.drives} == stage.serials()
    assert all(drive.capacity_bytes and drive.protocol == "NVMe" for drive in seen.drives)


def test_a_wrong_password_is_a_lasting_error_without_the_password_in_it(stage):
    driver = stage.login(password="s3cret-but-wrong")
    with pytest.raises(DriverError) as error:
        driver.power()
    assert error.value.code == "BMC_LOGIN" and error.value.permanent
    (problem,) = driver.check()
    assert "user name or password" in problem
    assert "s3cret" not in problem + str(error.value)
    # Right logins end the row of wrong ones, before the account is locked.
    assert stage.login().check() == []


def test_an_unreachable_bmc_is_a_passing_error(stage):
    stage.unplug()
    with pytest.raises(DriverError) as error:
        stage.driver.power()
    assert error.value.code == "BMC_UNREACHABLE" and not error.value.permanent
    assert stage.driver.check() != []


@pytest.mark.parametrize(
    "write",
    [
        lambda driver: driver.set_power("on"),
        lambda driver: driver.boot_from("cd"),
        lambda driver: driver.media(ISO),
    ],
)
def test_nothing_is_written_once_the_budget_is_spent(stage, write):
    stage.driver.power()
    with call_budget(0), pytest.raises(DriverError) as error:
        write(stage.driver)
    assert error.value.code == "BUDGET_SPENT"
    assert stage.writes("power") + stage.writes("boot") + stage.writes("media") == []


def test_unknown_settings_are_refused(stage):
    with pytest.raises(ConfigError):
        type(stage.driver).Config.from_dict({"nonsense": 1})


# What only a real BMC has.


def test_boot_progress_is_told(bmc):
    bmc.driver.set_power("on")
    for _ in range(300):
        if bmc.driver.power().boot_progress == "SystemHardwareInitializationComplete":
            return
        time.sleep(0.005)
    raise AssertionError("never seen in POST")


def test_a_dgx_shows_its_gpus_and_the_certificate_to_pin(dgx):
    seen = dgx.driver.inspect()
    rack = dgx.lab.rack["dgx-01"]
    assert [gpu.serial for gpu in seen.gpus] == [gpu["serial"] for gpu in rack["gpus"]]
    assert {port.mac for port in seen.ports} == {nic["mac"] for nic in rack["nics"]}
    assert {mac: (told["switch"], told["port"]) for mac, told in seen.extra["lldp"].items()} == {
        nic["mac"]: (nic["switch"], nic["port"]) for nic in rack["nics"]
    }
    assert (seen.uuid, seen.serial) == (rack["uuid"], rack["serial"])
    assert seen.bmc_version == rack["bmc_version"] and seen.bios_version == rack["bios_version"]
    assert re.fullmatch("[0-9a-f]{64}", seen.certificate)
    assert dgx.login(certificate=seen.certificate).check() == []


def test_another_certificate_than_the_pinned_one_is_not_talked_to(bmc):
    driver = bmc.login(certificate="AB:" * 31 + "AB")
    with pytest.raises(DriverError) as error:
        driver.power()
    assert error.value.code == "BMC_CERTIFICATE" and error.value.permanent
    assert "certificate" in driver.check()[0]


@pytest.mark.parametrize("wrong", [{"certificate": "abc"}, {"address": "https://"}])
def test_settings_that_cannot_be_right_are_refused(wrong):
    values = {"address": "https://10.0.0.5", "username": "a", "password": "b", **wrong}
    with pytest.raises(DriverError) as error:
        Redfish(Redfish.Config.from_dict(values))
    assert error.value.code == "DRIVER_CONFIG"


def test_a_gpu_that_vanished_is_missing_from_the_inspection(dgx):
    dgx.suffer("hidden_gpu", 1)
    assert len(dgx.driver.inspect().gpus) == 7


def test_the_systems_path_in_the_address_is_honoured(bmc):
    right = f"{bmc.values['address']}/redfish/v1/Systems/System.Embedded.1"
    assert bmc.login(address=right).check() == []
    assert bmc.login(address=f"redfish-virtualmedia+{right}").check() == []
    assert bmc.login(address=right.replace("Embedded.1", "Embedded.9")).check() != []


def test_many_calls_share_one_session(bmc):
    before = len(bmc._acts("login"))
    for _ in range(5):
        bmc.login().power()
        bmc.login().set_power("off")
    assert len(bmc._acts("login")) <= before + 1


def test_sessions_are_ended_at_the_bmc(bmc):
    bmc.driver.power()
    close_sessions()
    with_basic = bmc.login(auth="basic")
    assert with_basic.power().power == "off"
    assert sessions(bmc) == 0


def sessions(bmc):
    with connect(bmc.login(auth="basic").login) as client:
        found = client.get("/redfish/v1/SessionService/Sessions")
    return len(found["Members"])


def test_a_session_the_bmc_forgot_is_opened_again(bmc):
    with connect(bmc.driver.login) as client:
        client.root()._conn.delete(client.root()._auth.get_session_resource_id())
    assert bmc.driver.power().power == "off"


def test_a_late_answer_is_a_timeout_and_the_write_was_sent_once(bmc):
    driver = bmc.login(read_timeout=0.3)
    driver.power()
    bmc.suffer("delay", 0.5)
    started = time.monotonic()
    with pytest.raises(DriverError) as error:
        driver.set_power("on")
    assert error.value.code == "BMC_TIMEOUT" and not error.value.permanent
    assert time.monotonic() - started < 2
    bmc.lab.faults(bmc.name)
    time.sleep(0.3)
    assert len(bmc.writes("power")) <= 1


def test_check_answers_within_its_time_whatever_the_bmc_does(bmc, monkeypatch):
    assert redfish.CHECK_SECONDS < 5
    monkeypatch.setattr(redfish, "CHECK_SECONDS", 1.0)
    bmc.suffer("drop", 1)
    started = time.monotonic()
    assert bmc.driver.check() != []
    assert time.monotonic() - started < 2


def test_a_bmc_that_hangs_up_is_unreachable(bmc):
    bmc.suffer("no_reply")
    with pytest.raises(DriverError) as error:
        bmc.driver.power()
    assert error.value.code == "BMC_UNREACHABLE"


def test_an_error_answer_is_a_passing_error(bmc):
    bmc.driver.power()
    bmc.suffer("error", 1)
    with pytest.raises(DriverError) as error:
        bmc.driver.power()
    assert error.value.code == "BMC_ERROR" and not error.value.permanent


def test_passwords_are_secret_settings():
    assert RedfishConfig.secret_names() == ("password",)
