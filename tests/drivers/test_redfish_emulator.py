"""A second opinion on the Redfish driver: the emulator of sushy-tools, which is not ours."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time

import pytest
from aiohttp import web

from inventory.drivers.redfish import Redfish
from inventory.drivers.redfish_session import close_sessions

SYSTEM = {
    "uuid": "27946b59-9e44-4fa7-8e91-f3527a1ef094",
    "name": "bare-metal-9",
    "power_state": "Off",
    "external_notifier": False,
    "nics": [{"mac": "00:5c:52:31:3a:9c", "ip": "172.22.0.100"}],
}


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("emulator")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = {
        "SUSHY_EMULATOR_LISTEN_IP": "127.0.0.1",
        "SUSHY_EMULATOR_LISTEN_PORT": port,
        "SUSHY_EMULATOR_STATE_DIR": str(folder),
        "SUSHY_EMULATOR_FAKE_SYSTEMS": [SYSTEM],
    }
    config = folder / "emulator.py"
    config.write_text("\n".join(f"{name} = {value!r}" for name, value in settings.items()))
    command = [sys.executable, "-m", "sushy_tools.emulator.main", "--fake", "--config", str(config)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.05)
    yield f"http://127.0.0.1:{port}"
    close_sessions()
    process.terminate()
    process.wait(10)


@pytest.fixture
def driver(emulator):
    values = {"address": emulator, "username": "admin", "password": "any"}
    return Redfish(Redfish.Config.from_dict(values))


def test_it_is_usable_although_it_has_no_sessions(driver):
    assert driver.check() == []


def test_its_power_is_read_and_switched(driver):
    assert driver.power().power == "off"
    # It changes after up to eleven seconds, so here the acceptance is what counts.
    driver.set_power("on")
    assert driver.power().power in ("on", "off")


def test_its_boot_device_is_set_although_it_always_tells_continuous(driver):
    driver.boot_from("cd")
    driver.boot_from("hdd")


def test_its_media_are_inserted_and_ejected(driver, serve):
    async def iso(request):
        return web.Response(body=b"iso")

    app = web.Application()
    app.router.add_get("/agent.iso", iso)
    url = f"{serve(app).url}/agent.iso"
    for wanted in (url, url, None, None):
        driver.media(wanted)


def test_its_system_is_inspected(driver):
    seen = driver.inspect()
    assert seen.uuid == SYSTEM["uuid"]
    assert [port.mac for port in seen.ports] == [SYSTEM["nics"][0]["mac"]]
    assert json.dumps(seen.extra)
