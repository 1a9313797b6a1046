"""How cells are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gpucloud.kubeapi.builtin import BUILTIN
from gpucloud.kubeapi.jsonpath import find
from gpucloud.kubeapi.kinds import Registry
from gpucloud.kubeapi.table import age, table


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (5, "5s"), (119, "119s"), (120, "2m"), (330, "5m30s"), (700, "11m"), (3 * 3600, "3h"),
        (4 * 3600 + 120, "4h2m"), (20 * 3600, "20h"), (50 * 3600, "2d2h"), (30 * 86400, "30d"),
        (800 * 86400, "2y70d"),
    ],
)  # fmt: skip
def test_ages_are_written_as_kubectl_does(seconds, written):
    then = datetime.now(UTC) - timedelta(seconds=seconds)
    assert age(then.isoformat()) == written


OBJ = {"a": {"b.c": [1, {"type": "x", "v": 2}], "d": {"e": "f"}}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.d.e", ["f"]),
        (".a.b\\.c[0]", [1]),
        (".a['b.c'][1].v", [2]),
        ('.a.b\\.c[?(@.type=="x")].v', [2]),
        (".a.d.*", ["f"]),
        (".a.nope.deeper", []),
        ("{.a.d.e}", ["f"]),
        ("a..[", []),
    ],
)
def test_json_paths(path, found):
    assert find(OBJ, path) == found


def test_a_cordoned_node_says_so():
    node = {
        "metadata": {"name": "n", "creationTimestamp": "2026-01-01T00:00:00Z",
                     "labels": {"node-role.kubernetes.io/worker": ""}},
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    }  # fmt: skip
    row = table(Registry(BUILTIN).find("nodes"), [node], {})["rows"][0]
    assert row["cells"][1:3] == ["NotReady,SchedulingDisabled", "worker"]
