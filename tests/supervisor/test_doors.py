"""doors.json: picked once, kept, added to."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from gpucloud.doors import door_port, read_doors, reserve_doors
from gpucloud.supervisor import demo
from gpucloud.supervisor.core import Refused


def test_doors_are_kept_and_only_web_follows_port(tmp_path: Path):
    first = reserve_doors(tmp_path, 8000)
    second = reserve_doors(tmp_path, 8100)
    assert second == {**first, "web": "http://127.0.0.1:8100"}
    assert read_doors(tmp_path) == second


def test_doors_of_others_are_kept_and_their_ports_left_alone(tmp_path: Path):
    (tmp_path / "doors.json").write_text(json.dumps({"lab": "http://127.0.0.1:40123"}))
    doors = reserve_doors(tmp_path, 8000)
    assert doors["lab"] == "http://127.0.0.1:40123"
    assert len({door_port(url) for url in doors.values()}) == 4


def test_keys_are_made_once_and_readable_by_nobody_else(tmp_path: Path):
    demo.make_keys(tmp_path)
    key = tmp_path / "keys/encryption.key"
    made = key.read_text()
    demo.make_keys(tmp_path)
    assert key.read_text() == made
    assert key.stat().st_mode & 0o777 == 0o600


def test_a_lost_encryption_key_is_not_replaced_silently(tmp_path: Path):
    demo.make_keys(tmp_path)
    (tmp_path / "demo-token").touch()
    (tmp_path / "keys/encryption.key").unlink()
    with pytest.raises(Refused, match="encryption.key is missing"):
        demo.make_keys(tmp_path)


def test_a_port_in_use_is_named_before_anything_starts(tmp_path: Path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        reserve_doors(tmp_path, other.getsockname()[1])
        with pytest.raises(Refused, match="used by another program: choose another PORT"):
            demo.check_ports(tmp_path)


@pytest.mark.parametrize("text", ["eighty", "0", "70000", "-1"])
def test_a_port_that_is_none_is_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PORT", text)
    with pytest.raises(Refused, match="PORT must be a port number"):
        demo.chosen_port()
