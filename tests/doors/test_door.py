"""The door over TLS: the agent's calls, its boot media, and callers who mean no good."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import struct
import sys
import zipfile
from pathlib import Path

import pytest
from django.conf import settings as configured

from gpucloud.engine.offload import in_database
from provisioning import agents
from provisioning.door.media import CONFIG_SIZE, MARK, Image, fixed_image
from provisioning.models import AgentRun

pytestmark = pytest.mark.django_db(transaction=True)
AGENT = Path(configured.BASE_DIR) / "deploy" / "agent"
HELLO = {"system_uuid": "", "macs": ["52:54:00:10:01:01"], "serial": "SN1"}


@pytest.fixture
def run(make_operation):
    return agents.open_run(make_operation(), "wipe")


@pytest.fixture
def key(run):
    return run[1].split("/")[-2]


def config_in(image):
    at = image.index(MARK) + len(MARK)
    return json.loads(image[at : at + CONFIG_SIZE])


async def test_the_real_agent_boots_from_the_media_wipes_and_reports(run, key, door, tmp_path):
    async with door.ask("GET", f"/{key}/agent.iso") as answer:
        config = config_in(await answer.read())
    for serial in ("S1", "S2"):
        (tmp_path / f"{serial}.img").write_bytes(b"TENANCY one\n" * 4096)
    drives = [
        {
            "name": f"disk-{serial}",
            "serial": serial,
            "model": "m",
            "capacity_bytes": 1 << 20,
            "protocol": "NVMe",
            "path": f"{serial}.img",
            "verbs": {"sanitize": "ok"},
            "seconds": 0.1,
        }
        for serial in ("S1", "S2")
    ]
    machine = {"uuid": "", "serial": "SN1", "macs": HELLO["macs"], "drives": drives, "gpus": []}
    (tmp_path / "machine.json").write_text(json.dumps(machine))
    (tmp_path / "agent.json").write_text(json.dumps(config))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gpucloud_agent"),
        *("--config", str(tmp_path / "agent.json"), "--hardware", f"fake:{tmp_path}"),
        env={"PYTHONPATH": str(AGENT), "PATH": os.environ["PATH"]},
        stderr=asyncio.subprocess.PIPE,
    )
    _, words = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, words.decode()
    kept = await in_database(AgentRun.objects.get, pk=run[0].pk)
    assert kept.ok is True
    assert {drive["serial"] for drive in kept.report["drives"]} == {"S1", "S2"}
    assert not (tmp_path / "S1.img").read_bytes().strip(b"\0")
    assert not (tmp_path / "poweroff").exists(), "the engine powers off, at the BMC"


async def test_the_media_is_the_fixed_image_but_for_its_reserved_area(key, door):
    async with door.ask("GET", f"/{key}/agent.iso") as answer:
        image = await answer.read()
    fixed = fixed_image()
    at, area = fixed.offset, len(MARK) + CONFIG_SIZE
    assert image[:at] == fixed.content[:at]
    assert image[at + area :] == fixed.content[at + area :]
    assert config_in(image)["key"] == key


async def test_any_range_of_the_media_is_that_part_of_the_whole(key, door):
    path = f"/{key}/agent.iso"
    async with door.ask("GET", path) as answer:
        image = await answer.read()
    at = fixed_image().offset
    for start, end in [(0, 1), (at - 5, at + 5), (at + 4000, at + 5000), (at, at + 4120)]:
        async with door.ask("GET", path, headers={"Range": f"bytes={start}-{end - 1}"}) as answer:
            assert answer.status == 206
            assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/{len(image)}"
            assert await answer.read() == image[start:end]
    async with door.ask("GET", path, headers={"Range": "bytes=-7"}) as answer:
        assert await answer.read() == image[-7:]
    async with door.ask("GET", path, headers={"Range": f"bytes={len(image)}-"}) as answer:
        assert answer.status == 416


async def test_head_tells_the_size_and_sends_nothing(key, door):
    async with door.ask("HEAD", f"/{key}/agent.iso") as answer:
        assert answer.status == 200
        assert int(answer.headers["Content-Length"]) == fixed_image().size
        assert answer.headers["Accept-Ranges"] == "bytes"
        assert await answer.read() == b""


def test_the_fixed_image_is_iso_9660_and_carries_the_agent():
    image = bytes(fixed_image().content)
    assert image[16 * 2048 : 16 * 2048 + 7] == b"\x01CD001\x01"
    assert struct.unpack_from("<I", image, 16 * 2048 + 80)[0] * 2048 == len(image)
    root = struct.unpack_from("<I", image, 16 * 2048 + 156 + 2)[0] * 2048
    files, at = {}, root
    while image[at]:
        record = image[at : at + image[at]]
        start, size = (struct.unpack_from("<I", record, n)[0] for n in (2, 10))
        files[record[33 : 33 + record[32]]] = image[start * 2048 : start * 2048 + size]
        at += image[at]
    assert files[b"AGENT.CFG;1"].startswith(MARK)
    archive = zipfile.ZipFile(io.BytesIO(files[b"AGENT.ZIP;1"]))
    assert "gpucloud_agent/__main__.py" in archive.namelist()


async def test_the_same_key_twice_is_gone(key, door):
    status, body = await door.call("POST", "/agent/v1/hello", json={"key": key, **HELLO})
    assert status == 200 and body["token"]
    status, _ = await door.call("POST", "/agent/v1/hello", json={"key": key, **HELLO})
    assert status == 410


async def test_without_a_token_there_is_no_plan(door):
    assert (await door.call("GET", "/agent/v1/plan"))[0] == 401
    assert (await door.call("GET", "/agent/v1/plan", "agt_guessed"))[0] == 401


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"[]",
        b'{"percent": "many"}',
        b'{"percent": NaN}',
        b'{"percent": 101}',
        b'{"percent": 1, "message": "\\u0000"}',
        b'{"percent": 1, "message": "\\ud800"}',
        b'{"percent": 1, "message": 7}',
        b"[" * 9000,
    ],
)
async def test_bad_bodies_are_refused_as_such(key, door, body):
    _, said = await door.call("POST", "/agent/v1/hello", json={"key": key, **HELLO})
    status, _ = await door.call("POST", "/agent/v1/progress", said["token"], data=body)
    assert status == 400


@pytest.mark.parametrize("drives", [7, ["S1"], {"S1": {}}])
async def test_reports_of_another_shape_are_refused(key, door, drives):
    _, said = await door.call("POST", "/agent/v1/hello", json={"key": key, **HELLO})
    body = {"ok": True, "error": "", "report": {"drives": drives}}
    assert (await door.call("POST", "/agent/v1/result", said["token"], json=body))[0] == 400


async def test_a_reader_of_the_media_that_hangs_up_is_no_fault(key, door, monkeypatch, caplog):
    large = Image(fixed_image().content + bytes(32 << 20), fixed_image().offset)
    monkeypatch.setattr("provisioning.door.server.fixed_image", lambda: large)
    async with door.ask("GET", f"/{key}/agent.iso") as answer:
        await answer.content.readexactly(4096)
        answer.close()
    await asyncio.sleep(0.2)
    assert "fault" not in caplog.text


async def test_bodies_over_the_limit_are_refused(key, door):
    _, said = await door.call("POST", "/agent/v1/hello", json={"key": key, **HELLO})
    large = json.dumps({"percent": 1, "message": "x" * 20_000}).encode()
    assert (await door.call("POST", "/agent/v1/progress", said["token"], data=large))[0] == 413


async def test_guessing_keys_gets_slow_and_the_known_agent_goes_on(key, door):
    _, said = await door.call("POST", "/agent/v1/hello", json={"key": key, **HELLO})
    assert (await door.call("GET", "/agent/v1/plan", said["token"]))[0] == 200
    answers = [(await door.call("GET", "/agent/v1/plan", f"agt_{n}"))[0] for n in range(90)]
    assert answers[0] == 401
    assert answers[-1] == 429
    assert (await door.call("GET", "/agent/v1/plan", said["token"]))[0] == 200


async def test_neither_key_nor_token_is_logged(key, door, caplog):
    caplog.set_level(logging.DEBUG)
    _, said = await door.call("POST", "/agent/v1/hello", json={"key": key, **HELLO})
    await door.call("POST", "/agent/v1/hello", json={"key": key, **HELLO})
    await door.call("GET", "/agent/v1/plan", said["token"])
    async with door.ask("GET", f"/{key}/agent.iso"):
        pass
    assert key not in caplog.text
    assert said["token"] not in caplog.text


async def test_a_database_that_is_away_asks_the_agent_to_come_again(key, door, monkeypatch):
    from django.db import OperationalError

    def away(*_):
        raise OperationalError("gone")

    monkeypatch.setattr(agents, "hello", away)
    status, _ = await door.call("POST", "/agent/v1/hello", json={"key": key, **HELLO})
    assert status == 503
