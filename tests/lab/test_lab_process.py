"""Set-up, and the hardware process as the supervisor runs it: resumed after a kill."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import datetime

import pytest

from gpucloud.lab import acts, place, setup
from tests.lab.hardware_rig import SERVER, Rig, make_data


def test_set_up_twice_changes_nothing(tmp_path, monkeypatch):
    data = make_data(tmp_path, monkeypatch)

    def content():
        return {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}

    before = content()
    setup.main()
    assert content() == before
    assert {"lab", "images", "ironic", "kube", "switch-leaf-1", "bmc-dgx-04"} <= set(
        place.read_json(data / "doors.json")
    )


def test_set_up_keeps_the_doors_of_others(tmp_path, monkeypatch):
    data = tmp_path / "data"
    place.write_json(data / "doors.json", {"valkey": "redis://:secret@127.0.0.1:6400/0"}, 0o600)
    monkeypatch.setenv("GPUCLOUD_DATA", str(data))
    setup.main()
    assert place.read_json(data / "doors.json")["valkey"] == "redis://:secret@127.0.0.1:6400/0"
    assert (data / "doors.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["credentials.json", "token", "kube/ca.key", "kube/kubeconfig"])
def test_secrets_are_for_their_owner_only(tmp_path, monkeypatch, name):
    data = make_data(tmp_path, monkeypatch)
    assert (data / "lab" / name).stat().st_mode & 0o777 == 0o600


def test_an_act_log_goes_on_after_a_torn_line(tmp_path):
    path = tmp_path / "acts.jsonl"
    log = acts.ActLog(path)
    log.write("door", "a", "fault")
    log.write("door", "b", "fault")
    log.close()
    with path.open("ab") as file:
        file.write(b'{"seq":3,"at":"20')
    log = acts.ActLog(path)
    log.write("door", "c", "fault")
    log.close()
    assert [(act["seq"], act["object"]) for act in acts.read(path)] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
    ]


class Outside(Rig):
    """The lab as a process of its own."""

    async def start_lab(self):
        self.child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gpucloud.lab.hardware", env={**os.environ}
        )
        for _ in range(500):
            try:
                await self.door("GET", f"/servers/{SERVER}")
                return
            except OSError:
                await asyncio.sleep(0.02)
        raise AssertionError("the lab did not start")

    async def stop_lab(self):
        await self.end(signal.SIGTERM)

    async def end(self, number):
        if self.child.returncode is None:
            self.child.send_signal(number)
        return await asyncio.wait_for(self.child.wait(), 10)

    async def seen(self, phase):
        for _ in range(500):
            _, server = await self.door("GET", f"/servers/{SERVER}")
            if server["phase"] == phase:
                return server
            await asyncio.sleep(0.02)
        raise AssertionError(server)


@pytest.fixture
async def outside(tmp_path, monkeypatch):
    rig = Outside(make_data(tmp_path, monkeypatch))
    await rig.start()
    yield rig
    await rig.stop()


async def test_a_killed_lab_resumes_with_the_machine_at_post(outside):
    rig = outside
    rig.ironic.jobs["52:54:00:10:01:01"] = rig.deploy_job()
    path = "/Systems/System.Embedded.1"
    insert = f"{path}/VirtualMedia/USBStick/Actions/VirtualMedia.InsertMedia"
    boot = {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Continuous"}
    await rig.bmc("POST", insert, {"Image": "http://127.0.0.1:9/a.iso"})
    await rig.bmc("PATCH", path, {"Boot": boot})
    await rig.fault(delay=0.01)
    await rig.reset("On")
    await rig.until(lambda: rig.ironic.results)
    last = rig.acts()[-1]["seq"]
    await rig.end(signal.SIGKILL)

    await rig.start_lab()
    server = await rig.seen("ramdisk")
    assert server["power"] == "on"
    assert server["drives"][0]["image"] == rig.image()["checksum"]
    assert server["media"] == {"USBStick": "http://127.0.0.1:9/a.iso"}
    assert server["faults"] == {"delay": 0.01}
    assert server["boot_override"] == {"target": "Pxe", "enabled": "Continuous"}
    again = [act for act in rig.acts() if act["seq"] > last and act["verb"] == "phase"]
    assert [act["after"] for act in again] == ["post", "loading", "ramdisk"]
    post, loading = (datetime.fromisoformat(act["at"]) for act in again[:2])
    # This POST is the one after the install, so it lasts its five seconds.
    assert (loading - post).total_seconds() >= 5
    sequence = [act["seq"] for act in rig.acts()]
    assert sequence == list(range(1, len(sequence) + 1))


async def test_the_process_beats_and_ends_when_asked(outside):
    run = outside.data / "run"
    assert (run / "lab-hardware.pid").read_text().split() == [str(outside.child.pid)]
    assert (run / "lab-hardware.beat").exists()
    assert await outside.end(signal.SIGTERM) == 0
