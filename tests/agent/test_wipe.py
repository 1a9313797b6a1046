"""The agent wipes: which verb, what it reports, and what it leaves alone."""

from __future__ import annotations

import pytest

BLANK = bytes(1 << 20)


def drive(result, name):
    (found,) = [one for one in result["report"]["drives"] if one["name"] == name]
    return found


def tried(result, name):
    return [(t["method"], t["status"]) for t in drive(result, name)["methods_tried"]]


def test_every_planned_drive_is_sanitized_read_back_and_reported(machine, door, wipe):
    machine.add("nvme0n1", "S1")
    machine.add("nvme1n1", "S2")
    result = wipe("S1", "S2")
    assert result["ok"] and result["error"] == ""
    assert machine.bytes_of("nvme0n1") == machine.bytes_of("nvme1n1") == BLANK
    one = drive(result, "nvme0n1")
    assert one["method"] == "sanitize" and one["ok"] and one["planned"]
    assert one["serial"] == "S1" and one["capacity_bytes"] == 960197124096
    assert one["methods_tried"][0]["raw"]
    assert one["started"] <= one["ended"] and one["ended"].endswith("Z")
    readback = one["readback"]
    assert readback["nonblank"] == 0 and readback["first_nonblank_hex"] is None
    assert readback["samples"] == len(readback["offsets"]) >= 32
    assert readback["offsets"][0] == 0 and readback["offsets"][-1] == (1 << 20) - 4096
    assert result["report"]["missing"] == result["report"]["extra"] == []
    assert result["report"]["system_uuid"].startswith("4c4c4544")


@pytest.mark.parametrize(
    ("verbs", "expected"),
    [
        (
            {"sanitize": "fail", "format": "ok", "overwrite": "ok"},
            [("sanitize", "failed"), ("format", "ok")],
        ),
        (
            {"sanitize": "unsupported", "format": "fail", "overwrite": "ok"},
            [("sanitize", "unsupported"), ("format", "failed"), ("overwrite", "ok")],
        ),
    ],
)
def test_a_weaker_verb_is_used_only_when_the_stronger_ones_fail(machine, wipe, verbs, expected):
    machine.add("nvme0n1", "S1", **verbs)
    result = wipe("S1")
    assert result["ok"]
    assert tried(result, "nvme0n1") == expected
    assert drive(result, "nvme0n1")["method"] == expected[-1][0]
    assert machine.bytes_of("nvme0n1") == BLANK


def test_an_ata_drive_is_asked_for_secure_erase(machine, wipe):
    machine.add("sda", "S1", protocol="SATA", secure_erase="ok", overwrite="ok")
    assert tried(wipe("S1"), "sda") == [("secure_erase", "ok")]


def test_a_drive_that_fails_every_verb_fails_the_wipe_and_the_others_are_done(machine, wipe):
    machine.add("nvme0n1", "S1", sanitize="fail", format="fail", overwrite="fail")
    machine.add("nvme1n1", "S2")
    result = wipe("S1", "S2")
    assert not result["ok"] and "nvme0n1" in result["error"]
    assert not drive(result, "nvme0n1")["ok"]
    assert drive(result, "nvme0n1")["method"] is None
    assert "status 0x6" in drive(result, "nvme0n1")["methods_tried"][0]["raw"]
    assert drive(result, "nvme1n1")["ok"] and machine.bytes_of("nvme1n1") == BLANK


def test_a_verb_that_claims_success_and_does_nothing_is_found_by_the_read_back(machine, wipe):
    machine.add("nvme0n1", "S1", sanitize="nothing", format="ok", overwrite="ok")
    result = wipe("S1", samples=64)
    one = drive(result, "nvme0n1")
    assert one["ok"] and one["method"] == "sanitize"
    assert one["readback"]["nonblank"] > 0
    assert bytes.fromhex(one["readback"]["first_nonblank_hex"]).startswith(b"TENANCY one-gpu-abc12")


def test_a_drive_of_the_plan_that_is_not_seen_is_reported_missing(machine, wipe):
    machine.add("nvme0n1", "S1")
    result = wipe("S1", "S9")
    assert result["report"]["missing"] == ["S9"]
    assert [one["serial"] for one in result["report"]["drives"]] == ["S1"]


def test_a_drive_that_is_not_in_the_plan_is_reported_and_left_alone(machine, wipe):
    machine.add("nvme0n1", "S1")
    machine.add("nvme1n1", "S2")
    before = machine.bytes_of("nvme1n1")
    result = wipe("S1")
    assert result["report"]["extra"] == ["S2"]
    assert drive(result, "nvme1n1")["planned"] is False
    assert drive(result, "nvme1n1")["method"] is None
    assert machine.bytes_of("nvme1n1") == before


def test_progress_names_the_drive_and_never_goes_back(machine, door, wipe):
    machine.add("nvme0n1", "S1", seconds=0.3, sanitize="ok")
    wipe("S1")
    heard = door.told("progress")
    assert [one["drive"] for one in heard] == ["S1"] * len(heard)
    percents = [one["percent"] for one in heard]
    assert percents == sorted(percents) and percents[-1] == 100
    assert "sanitize" in heard[0]["message"]


def test_drives_are_wiped_side_by_side(machine, wipe):
    for n in range(4):
        machine.add(f"nvme{n}n1", f"S{n}", seconds=0.5, sanitize="ok")
    result = wipe("S0", "S1", "S2", "S3")
    latest_start = max(one["started"] for one in result["report"]["drives"])
    assert latest_start < min(one["ended"] for one in result["report"]["drives"])


@pytest.mark.parametrize(("after", "off"), [("poweroff", True), ("wait", False)])
def test_the_plan_says_whether_the_machine_powers_off(machine, wipe, after, off):
    machine.add("nvme0n1", "S1")
    wipe("S1", after=after)
    assert machine.is_off is off
