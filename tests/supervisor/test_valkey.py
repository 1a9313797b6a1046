"""The Valkey of the wheel, run by ourselves."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from gpucloud.doors import read_doors, reserve_doors
from gpucloud.supervisor import demo
from gpucloud.supervisor.child import Child
from gpucloud.supervisor.leftovers import leftovers


@pytest.fixture
def valkey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Child]:
    monkeypatch.delenv("REDIS_URL", raising=False)
    (tmp_path / "run").mkdir()
    doors = reserve_doors(tmp_path, 8000)
    [process] = demo.valkey(tmp_path, doors)
    child = Child(process, tmp_path, {**os.environ, "GPUCLOUD_DATA": str(tmp_path)})
    child.start()
    deadline = time.monotonic() + 10
    while not child.ready and time.monotonic() < deadline:
        child.listen()
        time.sleep(0.02)
    yield child
    child.kill()


def test_it_answers_only_to_its_password_and_keeps_nothing(valkey: Child, tmp_path: Path):
    url = read_doors(tmp_path)["valkey"]
    server = redis.Redis.from_url(url)
    assert valkey.ready
    assert server.ping()
    assert server.config_get("save")["save"] == ""
    assert server.config_get("bind")["bind"] == "127.0.0.1"
    with pytest.raises(redis.AuthenticationError):
        redis.Redis("127.0.0.1", server.connection_pool.connection_kwargs["port"]).ping()
    assert url.split(":")[2].split("@")[0] not in Path(f"/proc/{valkey.pid}/cmdline").read_text()


def test_its_pulse_is_a_beat_file_like_any_other(valkey: Child):
    assert valkey.beat_file.exists()


def test_it_is_known_again_as_a_leftover(valkey: Child, tmp_path: Path):
    assert leftovers(tmp_path) == {valkey.pid: "valkey"}


def test_a_url_of_the_user_replaces_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REDIS_URL", "redis://127.0.0.1:6379/0")
    assert demo.valkey(tmp_path, {}) == []


def test_the_configuration_is_nobody_elses(valkey: Child, tmp_path: Path):
    for path in (tmp_path / "run/valkey.conf", tmp_path / "doors.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
