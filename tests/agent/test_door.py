"""The agent's conversation with its door: key and token, refusals, lost connections, the proxy."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

AGENT = Path(__file__).parents[2] / "deploy/agent/gpucloud_agent"
INSPECT = {"operation": "op-1", "verb": "inspect", "drives": [], "after": "poweroff"}


def test_it_trades_the_key_for_a_token_and_uses_only_that(machine, door, run_agent):
    machine.add("nvme0n1", "S1")
    door.plan = INSPECT
    code, words = run_agent()
    assert code == 0
    hello = door.heard[0]
    assert hello[0] == "/agent/v1/hello" and hello[1] is None
    assert hello[2] == {
        "key": "once-only",
        "system_uuid": "4c4c4544-0042-4d10-8031-b1c04f4d0001",
        "macs": ["52:54:00:10:01:01"],
        "serial": "BM01X7Q3",
    }
    assert {bearer for _, bearer, _ in door.heard[1:]} == {"Bearer agt_1"}
    assert "once-only" not in words and "agt_1" not in words


def test_inspect_reports_what_is_there_and_touches_nothing(machine, door, run_agent):
    machine.add("nvme0n1", "S1")
    before = machine.bytes_of("nvme0n1")
    door.plan = INSPECT
    run_agent()
    (result,) = door.told("result")
    assert result["ok"]
    assert result["report"]["drives"][0]["serial"] == "S1"
    assert result["report"]["gpus"] == [{"model": "NVIDIA L40S"}]
    assert machine.bytes_of("nvme0n1") == before


@pytest.mark.parametrize("status", [401, 403, 410])
@pytest.mark.parametrize("path", ["hello", "plan"])
def test_a_refusal_ends_it_and_no_drive_is_touched(machine, door, run_agent, status, path):
    machine.add("nvme0n1", "S1")
    before = machine.bytes_of("nvme0n1")
    door.plan = {**INSPECT, "verb": "wipe", "drives": [{"serial": "S1"}]}
    door.answers = {path: [status]}
    code, words = run_agent()
    assert code == 3 and str(status) in words
    assert len(door.told(path)) == 1
    assert machine.bytes_of("nvme0n1") == before and not machine.is_off


def test_an_operation_that_is_called_off_stops_the_wipe(machine, door, run_agent):
    machine.add("nvme0n1", "S1", seconds=30, sanitize="ok")
    before = machine.bytes_of("nvme0n1")
    door.plan = {**INSPECT, "verb": "wipe", "drives": [{"serial": "S1"}]}
    door.answers = {"progress": [410] * 99}
    code, _ = run_agent()
    assert code == 3
    assert machine.bytes_of("nvme0n1") == before


def test_lost_connections_and_busy_answers_are_tried_again(machine, door, run_agent):
    machine.add("nvme0n1", "S1")
    door.plan = INSPECT
    door.answers = {"plan": ["drop"], "result": [503]}
    code, _ = run_agent()
    assert code == 0
    assert len(door.told("plan")) == 2 and len(door.told("result")) == 2
    assert machine.is_off


def test_a_lost_progress_report_does_not_fail_the_wipe(machine, door, wipe):
    machine.add("nvme0n1", "S1")
    door.answers = {"progress": [500, "drop"]}
    assert wipe("S1")["ok"]


def test_it_goes_through_the_proxy_and_waits_while_the_proxy_refuses(
    machine, door, make_proxy, run_agent
):
    machine.add("nvme0n1", "S1")
    door.plan = INSPECT
    proxy = make_proxy(refuse=1)
    code, words = run_agent(proxy=proxy.url)
    assert code == 0 and "403" in words
    assert proxy.tunnels and all(f"CONNECT 127.0.0.1:{door.port}" in t for t in proxy.tunnels)


def test_a_door_with_another_certificate_learns_nothing(
    machine, door, start_agent, tmp_path, make_other_ca
):
    machine.add("nvme0n1", "S1")
    with start_agent(ca=make_other_ca()) as process:
        words = process.stderr.readline()
        process.terminate()
    assert "certificate" in words.lower()
    assert door.heard == []


def test_a_verb_it_does_not_know_is_reported(machine, door, run_agent):
    machine.add("nvme0n1", "S1")
    door.plan = {**INSPECT, "verb": "dance"}
    run_agent()
    assert door.told("result")[0]["error"] == "This agent cannot dance."


def test_a_broken_plan_is_reported_not_a_traceback(machine, door, run_agent):
    machine.add("nvme0n1", "S1")
    door.plan = {"verb": "wipe"}
    code, words = run_agent()
    assert code == 0 and "Traceback" not in words
    assert "KeyError" in door.told("result")[0]["error"]


def test_it_uses_nothing_but_the_standard_library_and_reads_as_python_3_9():
    for path in AGENT.glob("*.py"):
        tree = ast.parse(path.read_text(), feature_version=(3, 9))
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module]
            for name in names:
                root = name.split(".")[0]
                assert root in sys.stdlib_module_names or root == "gpucloud_agent", path
