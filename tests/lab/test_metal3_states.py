"""The lab's BareMetalHost state machine, over an Ironic in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpucloud.lab.kube.metal3.host import Host, merge_diff
from gpucloud.lab.kube.metal3.jobs import IronicError, Job, JobState
from gpucloud.lab.kube.metal3.states import Failed, step

IMAGE = {"url": "http://images/one.qcow2", "checksum": "a" * 64, "format": "qcow2"}
OTHER = {**IMAGE, "url": "http://images/two.qcow2"}
HOLD = {"reboot.metal3.io/gpucloud": '{"mode":"hard"}'}


class MemoryIronic:
    """Jobs end at once unless `slow`; `fails` maps a job's kind to its error."""

    def __init__(self) -> None:
        self.on = False
        self.registered = False
        self.jobs: list[Job] = []
        self.asked: list[tuple[bool, bool]] = []
        self.fails: dict[str, str] = {}
        self.slow = False
        self.login_fails = ""
        self.silent = False

    async def register(self, host: Host) -> str:
        if self.login_fails:
            raise IronicError(self.login_fails, "credentials")
        self.registered = True
        return "node-1"

    def known(self, host: Host) -> bool:
        return self.registered

    async def power(self, host: Host) -> bool:
        if self.silent:
            raise IronicError("Unable to connect", "unreachable")
        return self.on

    async def set_power(self, host: Host, on: bool, hard: bool) -> None:
        self.asked.append((on, hard))
        self.on = on

    async def work(self, host: Host, job: Job) -> JobState:
        if not self.jobs or self.jobs[-1].id != job.id:
            self.jobs.append(job)
        if self.slow:
            return JobState("running")
        if job.kind in self.fails:
            return JobState("failed", self.fails[job.kind])
        self.on = job.kind in ("deploy", "live-iso")
        return JobState("done", inventory={"vendor": "Dell Inc."})

    def details(self, host: Host, inventory: dict[str, Any]) -> dict[str, Any]:
        return {"systemVendor": {"manufacturer": inventory["vendor"]}}

    def forget(self, host: Host) -> None:
        self.registered = False


class World:
    """One host and its Ironic; `settle` looks until nothing is due at once."""

    def __init__(self) -> None:
        self.ironic = MemoryIronic()
        self.raw: dict[str, Any] = {
            "metadata": {"name": "one", "namespace": "default", "uid": "u-1", "annotations": {}},
            "spec": {
                "online": False,
                "bmc": {"address": "redfish+https://bmc/redfish/v1/Systems/1"},
            },
        }

    def look(self) -> Host:
        host = Host(self.raw)
        host.credentials = {"username": "admin", "password": "x"}
        try:
            self.delay = asyncio.run(step(host, self.ironic))
        except Failed:
            self.delay = 60.0
        self.raw["status"] = host.status
        self.raw["metadata"]["finalizers"] = host.finalizers
        for name in host.drop:
            self.raw["metadata"]["annotations"].pop(name, None)
        return host

    def settle(self, **spec: Any) -> str:
        self.raw["spec"].update(spec)
        for _ in range(20):
            host = self.look()
            if self.delay > 0:
                break
        return host.state

    @property
    def status(self) -> dict[str, Any]:
        return self.raw["status"]

    @property
    def notes(self) -> dict[str, str]:
        return self.raw["metadata"]["annotations"]


@pytest.fixture
def world() -> World:
    made = World()
    assert made.settle() == "available"
    return made


def test_a_new_host_registers_inspects_and_becomes_available(world: World) -> None:
    assert [job.kind for job in world.ironic.jobs] == ["inspect"]
    assert world.status["hardware"] == {"systemVendor": {"manufacturer": "Dell Inc."}}
    assert world.status["provisioning"]["ID"] == "node-1"
    assert {"register", "inspect"} <= set(world.status["operationHistory"])
    assert world.raw["metadata"]["finalizers"] == ["baremetalhost.metal3.io"]


def test_an_image_on_an_offline_host_just_waits(world: World) -> None:
    assert world.settle(image=IMAGE) == "available"
    assert [job.kind for job in world.ironic.jobs] == ["inspect"]
    assert world.settle(online=True) == "provisioned"
    assert world.status["provisioning"]["image"] == IMAGE


def test_a_hold_key_set_before_provisioned_is_deleted(world: World) -> None:
    world.notes.update({**HOLD, "foreign.example.com/note": "kept"})
    assert world.settle(image=IMAGE, online=True) == "provisioned"
    assert world.notes == {"foreign.example.com/note": "kept"}
    assert world.ironic.on


def test_a_hold_key_on_a_provisioned_host_powers_it_off_hard_until_it_is_removed(
    world: World,
) -> None:
    world.settle(image=IMAGE, online=True)
    world.notes.update(HOLD)
    world.settle()
    assert world.ironic.asked == [(False, True)]
    world.settle()
    assert not world.ironic.on
    assert world.notes == HOLD
    world.notes.clear()
    world.settle()
    assert world.ironic.on


def test_a_plain_reboot_is_dropped_once_the_host_is_off(world: World) -> None:
    world.settle(image=IMAGE, online=True)
    world.notes["reboot.metal3.io"] = ""
    world.settle()
    world.settle()
    assert world.notes == {}
    world.settle()
    assert world.ironic.asked == [(False, False), (True, False)]


def test_power_is_reasserted_from_spec_online(world: World) -> None:
    world.ironic.on = True
    world.settle()
    assert not world.ironic.on


def test_another_image_cleans_first_and_provisions_by_itself(world: World) -> None:
    world.settle(image=IMAGE, online=True)
    assert world.settle(image=OTHER) == "provisioned"
    assert [job.kind for job in world.ironic.jobs] == ["inspect", "deploy", "clean", "deploy"]
    assert world.status["provisioning"]["image"] == OTHER


def test_clearing_the_image_cleans_unless_cleaning_is_disabled(world: World) -> None:
    world.settle(image=IMAGE, online=True)
    assert world.settle(image=None, online=False) == "available"
    assert "image" not in world.status["provisioning"]
    world.settle(image=IMAGE, online=True, automatedCleaningMode="disabled")
    world.settle(image=None, online=False)
    assert [job.kind for job in world.ironic.jobs][-2:] == ["deploy", "power-off"]


def test_a_live_iso_needs_no_checksum_and_no_user_data(world: World) -> None:
    world.settle(image={"url": "https://door/k/agent.iso", "format": "live-iso"}, online=True)
    assert world.ironic.jobs[-1].kind == "live-iso"
    assert world.status["provisioning"]["state"] == "provisioned"


def test_a_failed_deployment_is_an_error_then_cleans_and_is_tried_again(world: World) -> None:
    world.ironic.fails = {"deploy": "checksum mismatch"}
    world.settle(image=IMAGE, online=True)
    assert world.status["operationalStatus"] == "error"
    assert world.status["errorType"] == "provisioning error"
    assert world.status["errorMessage"] == "checksum mismatch"
    assert world.status["errorCount"] == 1
    world.settle()
    assert world.status["errorCount"] == 2
    world.ironic.fails = {}
    world.settle()
    assert world.status["provisioning"]["state"] == "provisioned"
    assert (world.status["errorCount"], world.status["errorMessage"]) == (0, "")
    assert "errorType" not in world.status


def test_provisioning_stops_after_five_failures_until_the_image_changes(world: World) -> None:
    world.ironic.fails = {"deploy": "404"}
    for _ in range(7):
        world.settle(image=IMAGE, online=True)
    assert world.status["provisioningFailCount"] == 5
    assert world.status["errorType"] == "provisioning error"
    tried = len(world.ironic.jobs)
    world.settle()
    assert len(world.ironic.jobs) == tried
    world.ironic.fails = {}
    assert world.settle(image=OTHER) == "provisioned"


def test_wrong_credentials_are_a_registration_error(world: World) -> None:
    world.ironic.registered, world.ironic.login_fails = False, "the BMC answered 401"
    world.settle()
    assert world.status["errorType"] == "registration error"
    assert world.status["errorCount"] == 1
    world.ironic.login_fails = ""
    world.settle()
    assert world.status["operationalStatus"] == "OK"


def test_a_silent_bmc_is_a_power_management_error(world: World) -> None:
    world.ironic.silent = True
    world.settle()
    assert world.status["errorType"] == "power management error"


def test_a_missing_user_data_secret_fails_the_deployment(world: World) -> None:
    world.settle(image=IMAGE, online=True, userData={"name": "gone"})
    assert world.status["errorMessage"] == (
        "failed to retrieve userData: Secret default/gone not found"
    )


def test_a_paused_host_is_left_alone(world: World) -> None:
    world.notes["baremetalhost.metal3.io/paused"] = "somebody"
    world.ironic.on = True
    assert world.settle(image=IMAGE, online=True) == "available"
    assert world.ironic.asked == []


def test_a_detached_host_is_forgotten_and_comes_back(world: World) -> None:
    world.notes["baremetalhost.metal3.io/detached"] = ""
    world.settle()
    assert world.status["operationalStatus"] == "detached"
    assert not world.ironic.registered
    world.notes.clear()
    world.settle()
    assert world.status["operationalStatus"] == "OK"


def test_inspection_is_repeated_on_request_in_available(world: World) -> None:
    world.notes["inspect.metal3.io"] = ""
    world.settle()
    assert world.notes == {}
    assert world.status["provisioning"]["state"] == "available"


def test_a_deleted_host_is_cleaned_powered_off_and_let_go(world: World) -> None:
    world.settle(image=IMAGE, online=True)
    world.raw["metadata"]["deletionTimestamp"] = "2026-11-01T00:00:00Z"
    world.settle()
    assert world.ironic.jobs[-1].kind == "clean"
    assert not world.ironic.on
    assert world.raw["metadata"]["finalizers"] == []


def test_a_merge_diff_removes_by_null() -> None:
    before = {"a": {"b": 1, "c": 2}, "d": 3}
    assert merge_diff(before, {"a": {"b": 1}, "e": 4}) == {"a": {"c": None}, "d": None, "e": 4}
