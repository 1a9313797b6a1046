"""Machines: power, boot order, install, join, faults; each judged by bytes and acts."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from aiohttp import web

from gpucloud.lab.hardware import machine as machine_module
from gpucloud.lab.hardware.agent import MARK
from tests.lab.hardware_rig import SERVER, Rig, make_data


@pytest.fixture
async def rig(tmp_path, monkeypatch):
    # The five seconds have a test of their own.
    monkeypatch.setattr(machine_module, "POST_AFTER_INSTALL_SECONDS", 0.05)
    rig = Rig(make_data(tmp_path, monkeypatch))
    await rig.start()
    yield rig
    await rig.stop()


async def test_a_machine_installs_reboots_and_joins(rig):
    result = await rig.install()
    assert result["ok"], result
    assert [act["after"] for act in rig.acts("image")] == [rig.image()["checksum"]]
    assert {beat["stage"] for beat in rig.ironic.beats} == {"deploy"}

    await rig.power_off()
    rig.move_to_tenant()
    await rig.reset("On")
    await rig.until(lambda: rig.api.is_ready("one-cpu-1"))

    node = rig.api.nodes["one-cpu-1"]
    assert node["metadata"]["labels"]["pool"] == "cpu"
    assert node["status"]["nodeInfo"]["systemUUID"] == rig.server.facts.uuid
    assert node["status"]["nodeInfo"]["osImage"] == "Ubuntu 24.04.5 LTS"
    assert {"type": "InternalIP", "address": "192.168.100.11"} in node["status"]["addresses"]
    assert [disk.marker() for disk in rig.server.disks()] == ["claim-1", "claim-1"]
    assert rig.acts("violation") == []


async def test_the_phases_have_their_order_in_the_act_log(rig):
    await rig.install()
    phases = [act["after"] for act in rig.acts("phase")]
    assert phases == ["post", "loading", "ramdisk"]
    assert [act["after"] for act in rig.acts("power")] == ["on"]
    booted = [act["after"] for act in rig.acts("boot") if act["actor"] == f"machine:{SERVER}"]
    assert booted == ["Pxe"]


async def test_an_override_for_one_boot_is_used_up_by_it(rig):
    await rig.install()
    _, system = await rig.bmc("GET", "/Systems/System.Embedded.1")
    assert system["Boot"]["BootSourceOverrideTarget"] == "None"
    assert system["Boot"]["BootSourceOverrideEnabled"] == "Disabled"


async def test_the_post_after_an_install_lasts_five_seconds_whatever_the_speed(rig, monkeypatch):
    await rig.install()
    await rig.power_off()
    rig.move_to_tenant()
    monkeypatch.setattr(machine_module, "POST_AFTER_INSTALL_SECONDS", 0.7)
    await rig.reset("On")
    await rig.until(lambda: rig.machine.phase == "post")
    began = time.monotonic()
    await rig.until(lambda: rig.machine.phase == "loading")
    assert time.monotonic() - began > 0.6
    await rig.power_off()
    await rig.reset("On")
    await rig.until(lambda: rig.machine.phase == "post")
    began = time.monotonic()
    await rig.until(lambda: rig.machine.phase == "loading")
    assert time.monotonic() - began < 0.6


async def test_a_ramdisk_does_not_boot_outside_the_provisioning_vlan(rig):
    rig.move(4000, "swp1")
    await rig.boot("Pxe")
    await rig.until(lambda: rig.machine.phase == "no bootable device")
    assert rig.machine.is_on
    assert rig.ironic.beats == []


async def test_a_ramdisk_does_not_boot_without_a_dhcp_lease(rig):
    rig.ironic.without_lease.add("52:54:00:10:01:01")
    await rig.boot("Pxe")
    await rig.until(lambda: rig.machine.phase == "no bootable device")


async def test_an_inspection_reports_what_the_rack_holds(rig):
    rig.ironic.jobs["52:54:00:10:01:01"] = {"kind": "inspect"}
    await rig.boot("Pxe")
    await rig.until(lambda: rig.ironic.results)
    inventory = rig.ironic.results[0]["inventory"]
    assert [drive["serial"] for drive in inventory["drives"]] == [
        "S6CKNT0W7010001",
        "S6CKNT0W7010002",
    ]
    assert inventory["nics"][0]["lldp"] == {"switch": "leaf-1", "port": "swp1"}


async def test_metal3s_cleaning_makes_the_disk_unbootable_and_leaves_the_data(rig):
    await rig.install()
    disk = rig.server.disks()[0]
    disk.write_markers("claim-1")
    rig.ironic.jobs["52:54:00:10:01:01"] = {"kind": "clean"}
    await rig.boot("Pxe")
    await rig.until(lambda: len(rig.ironic.results) == 2)
    assert disk.boot_header() is None
    assert disk.marker() == "claim-1"


async def test_power_off_stops_what_runs(rig):
    await rig.install()
    beats = len(rig.ironic.beats)
    await rig.power_off()
    assert rig.machine.phase == "off"
    await asyncio.sleep(0.2)
    assert len(rig.ironic.beats) == beats


async def test_a_tenants_os_that_starts_in_provisioning_is_a_violation(rig):
    await rig.install()
    await rig.power_off()
    await rig.reset("On")
    await rig.until(lambda: rig.acts("violation"))
    assert "eno1" in rig.acts("violation")[0]["after"]


async def test_a_node_out_of_its_vlan_does_not_reach_its_cluster(rig):
    await rig.install()
    await rig.power_off()
    rig.move(101, "swp1")
    rig.move(101, "swp2")
    await rig.reset("On")
    await rig.until(lambda: "no route" in rig.machine.detail)
    assert rig.api.nodes == {}


async def test_a_joined_node_comes_back_after_a_reboot_without_its_token(rig):
    await rig.install()
    await rig.power_off()
    rig.move_to_tenant()
    await rig.reset("On")
    await rig.until(lambda: rig.api.is_ready("one-cpu-1"))
    rig.api.tokens.clear()
    await rig.reset("ForceRestart")
    await rig.until(lambda: len(rig.acts("join")) == 2)
    assert "refused" not in rig.acts("join")[1]["after"]


async def test_an_orderly_shutdown_needs_a_running_system(rig):
    await rig.install()
    await rig.reset("GracefulShutdown")
    await rig.until(lambda: not rig.machine.is_on)


# Faults.


async def test_die_in_install_hangs_at_that_percentage(rig):
    await rig.fault(die_in_install=50)
    rig.ironic.jobs["52:54:00:10:01:01"] = rig.deploy_job()
    await rig.boot("Pxe")
    await rig.until(lambda: rig.machine.phase == "hung")
    assert rig.ironic.beats[-1]["percent"] == 50
    assert rig.ironic.results == []
    assert rig.server.boot_disk() is None


async def test_a_corrupt_image_fails_the_check(rig):
    await rig.fault(corrupt_image=True)
    result = await rig.install()
    assert not result["ok"]
    assert "sha256" in result["error"]
    assert rig.server.boot_disk() is None


async def test_a_wrong_image_address_fails_the_job(rig):
    result = await rig.install(url=rig.doors["images"] + "/none.qcow2")
    assert not result["ok"]
    assert "404" in result["error"]


async def test_a_checksum_may_be_the_address_of_a_file(rig):
    url = rig.image()["url"]
    assert (await rig.install(checksum=url + ".sha256"))["ok"]


async def test_lost_network_data_leaves_the_os_without_network(rig):
    await rig.fault(lose_network_data=True)
    await rig.install()
    await rig.power_off()
    rig.move_to_tenant()
    await rig.reset("On")
    await rig.until(lambda: rig.machine.detail.startswith("no network"))
    assert rig.api.nodes == {}


async def test_a_refused_join_is_written_down(rig):
    await rig.fault(refuse_join=True)
    await rig.install()
    await rig.power_off()
    rig.move_to_tenant()
    await rig.reset("On")
    await rig.until(lambda: rig.acts("join"))
    assert rig.acts("join")[0]["after"]["refused"] == 403
    assert rig.api.nodes == {}


async def test_an_ignored_override_boots_the_old_disk(rig):
    await rig.install()
    await rig.fault(ignore_boot=True)
    await rig.boot("Pxe")
    await rig.until(lambda: rig.machine.device == "Hdd")


async def test_ignored_power_changes_nothing(rig):
    await rig.fault(ignore_power=True)
    await rig.reset("On")
    await asyncio.sleep(0.1)
    assert not rig.machine.is_on


async def test_a_hidden_drive_is_not_seen_by_the_ramdisk(rig):
    await rig.fault(hide_drive="nvme0n1")
    await rig.install()
    assert [bool(disk.boot_header()) for disk in rig.server.disks()] == [False, True]


async def test_a_wrong_vlan_at_the_switch_keeps_the_ramdisk_away(rig):
    await rig.fault(wrong_vlan=666)
    rig.move(10, "swp1")
    _, seen = await rig.door("GET", f"/servers/{SERVER}")
    assert seen["ports"][0]["vlan"] == 666


async def test_an_unknown_fault_is_refused(rig):
    status, answer = await rig.door("PUT", f"/servers/{SERVER}/faults", {"explode": True})
    assert status == 400
    assert "explode" in answer["error"]


# The agent, from virtual media.

AGENT = """
import json, pathlib, sys, time
folder = pathlib.Path(sys.argv[sys.argv.index("--hardware") + 1].removeprefix("fake:"))
config = json.loads(pathlib.Path(sys.argv[sys.argv.index("--config") + 1]).read_text())
assert config["key"] == "k1", config
for drive in json.loads((folder / "machine.json").read_text())["drives"]:
    if drive["verbs"]["sanitize"] == "ok":
        path = pathlib.Path(drive["path"])
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))
(folder / "poweroff").touch()
"""


@pytest.fixture
async def media(rig, tmp_path, monkeypatch):
    """A media door, and an agent small enough to read."""
    package = tmp_path / "code" / "gpucloud_agent"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(AGENT)
    monkeypatch.setattr("gpucloud.lab.hardware.agent.CODE", package.parent)
    config = json.dumps({"door": "https://127.0.0.1:1", "key": "k1", "ca": ""})
    image = bytes(70_000) + MARK + config.encode().ljust(4096) + bytes(9000)

    async def iso(request):
        return web.Response(body=image)

    app = web.Application()
    app.router.add_get("/k1/agent.iso", iso)
    port = await rig._serve(app, 0)
    return f"http://127.0.0.1:{port}/k1/agent.iso"


async def insert(rig, url):
    path = "/Systems/System.Embedded.1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
    status, _ = await rig.bmc("POST", path, {"Image": url})
    assert status == 204


async def test_the_agent_wipes_and_powers_off(rig, media):
    for disk in rig.server.disks():
        disk.write_markers("claim-1")
    await insert(rig, media)
    await rig.boot("Cd")
    await rig.until(lambda: not rig.machine.is_on)
    assert all(disk.is_blank() for disk in rig.server.disks())
    wiped = [(act["object"], act["before"]) for act in rig.acts("disk")]
    assert wiped == [(f"{SERVER}/nvme0n1", "claim-1"), (f"{SERVER}/nvme1n1", "claim-1")]
    assert rig.acts("power")[-1]["actor"] == f"machine:{SERVER}"


@pytest.mark.parametrize("fault", [{"wipe_does_nothing": True}, {"wipe_fails": True}])
async def test_a_wipe_that_does_not_happen_leaves_the_marker(rig, media, fault):
    rig.server.disks()[0].write_markers("claim-1")
    await rig.fault(**fault)
    await insert(rig, media)
    await rig.boot("Cd")
    await rig.until(lambda: not rig.machine.is_on)
    assert rig.server.disks()[0].marker() == "claim-1"
    assert rig.acts("disk") == []


async def test_ignored_media_is_not_there_to_boot_from(rig, media):
    await rig.fault(ignore_media=True)
    await insert(rig, media)
    await rig.fault()
    rig.ironic.without_lease.add("52:54:00:10:01:01")
    await rig.boot("Cd")
    await rig.until(lambda: rig.machine.phase == "no bootable device")


async def test_media_without_a_configuration_does_not_boot(rig):
    await insert(rig, rig.image()["url"])
    rig.ironic.without_lease.add("52:54:00:10:01:01")
    await rig.boot("Cd")
    await rig.until(lambda: rig.machine.phase == "no bootable device")


async def test_a_pulled_drive_is_gone_until_it_is_put_back(rig):
    path = f"/servers/{SERVER}/drives/nvme1n1"
    await rig.door("POST", path, {"present": False})
    assert [disk.drive.name for disk in rig.server.disks()] == ["nvme0n1"]
    _, storage = await rig.bmc("GET", "/Systems/System.Embedded.1/Storage/CPU.1")
    assert len(storage["Drives"]) == 1
    await rig.door("POST", path, {"present": True})
    assert len(rig.server.disks()) == 2
