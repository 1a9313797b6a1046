"""The agent's own code in a lab machine: its door is reached only from the provisioning VLAN."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from gpucloud.lab.hardware.agent import MARK
from tests.agent.door import StubDoor
from tests.lab.hardware_rig import SERVER, Rig, make_data

INSERT = "/Systems/System.Embedded.1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"


@pytest.fixture
async def rig(tmp_path, monkeypatch):
    rig = Rig(make_data(tmp_path, monkeypatch))
    await rig.start()
    yield rig
    await rig.stop()


@pytest.fixture
async def door(rig, tmp_path):
    """The agent door with a wipe plan, and media that names it, inserted into the machine."""
    (tmp_path / "door").mkdir()
    drives = [{"serial": drive.serial} for drive in rig.server.facts.drives]
    plan = {"operation": "op", "verb": "wipe", "drives": drives, "after": "poweroff"}
    made = StubDoor(tmp_path / "door", {**plan, "readback_samples": 8})
    config = json.dumps({"door": made.url, "key": "k1", "ca": made.ca}).encode()

    async def iso(request):
        return web.Response(body=bytes(5000) + MARK + config.ljust(4096))

    app = web.Application()
    app.router.add_get("/k1/agent.iso", iso)
    port = await rig._serve(app, 0)
    await rig.bmc("POST", INSERT, {"Image": f"http://127.0.0.1:{port}/k1/agent.iso"})
    yield made
    await asyncio.to_thread(made.close)


async def test_the_agent_wipes_every_drive_and_powers_off(rig, door):
    for disk in rig.server.disks():
        disk.write_markers("claim-1")
    await rig.boot("Cd")
    await rig.until(lambda: not rig.machine.is_on)
    (result,) = door.told("result")
    assert result["ok"], result
    assert [hello["system_uuid"] for hello in door.told("hello")] == [rig.server.facts.uuid]
    assert all(disk.is_blank() for disk in rig.server.disks())
    assert [act["object"] for act in rig.acts("disk")] == [
        f"{SERVER}/nvme0n1",
        f"{SERVER}/nvme1n1",
    ]


async def test_a_wipe_that_fails_is_reported(rig, door):
    await rig.fault(wipe_fails="nvme1n1")
    await rig.boot("Cd")
    await rig.until(lambda: not rig.machine.is_on)
    (result,) = door.told("result")
    assert not result["ok"]


async def test_an_agent_in_another_vlan_reaches_nobody_until_it_is_moved_back(rig, door):
    rig.move(4000)
    await rig.boot("Cd")
    await rig.until(lambda: rig.machine.phase == "agent")
    log = rig.process.world.folder / "machines" / SERVER / "agent.log"
    await rig.until(lambda: log.exists() and "504" in log.read_text())
    assert door.told("hello") == []
    rig.move(10)
    await rig.until(lambda: door.told("result"))


async def test_power_off_ends_the_agent(rig, door):
    door.plan["drives"] = []
    rig.move(4000)
    await rig.boot("Cd")
    await rig.until(lambda: rig.machine.phase == "agent")
    await rig.power_off()
    rig.move(10)
    await asyncio.sleep(0.5)
    assert door.told("hello") == []
