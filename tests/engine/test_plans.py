"""States in code and deadlines are the same list; every code is in the catalogue."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from django.conf import settings

from gpucloud.drivers import driver_class
from gpucloud.engine.deadlines import DEADLINES
from gpucloud.reasons import REASONS
from inventory.lifecycle import SERVER
from network.lifecycle import ATTACHMENT, SEGMENT
from provisioning.lifecycle import CLAIM, OPERATION
from provisioning.steps import STEPS
from tenants.lifecycle import CLUSTER, PHASES
from tenants.services.clusters import DELETION

ROOT = Path(settings.BASE_DIR)
OURS = [
    path
    for app in ("gpucloud", "inventory", "network", "tenants", "provisioning")
    for path in (ROOT / app).rglob("*.py")
    if "lab" not in path.parts and "migrations" not in path.parts
]


def test_every_step_has_a_deadline_and_every_deadline_a_step():
    steps = {("operation", name) for name in STEPS} | {
        ("cluster", name) for name in (*PHASES, *DELETION)
    }
    assert set(DEADLINES) == steps


@pytest.mark.parametrize("kind", settings.DRIVERS["provider"])
def test_every_step_of_every_provider_can_be_run(kind):
    plan = driver_class("provider", kind).steps
    assert set(plan) >= {"claim", "release"}
    assert {name for names in plan.values() for name in names} <= set(STEPS)


@pytest.mark.parametrize("table", [SERVER, CLAIM, OPERATION, SEGMENT, ATTACHMENT, CLUSTER])
def test_every_state_has_a_tone_and_a_way_in(table):
    states = set(table.tones)
    for verb in table.verbs.values():
        assert set(verb.sources) <= states and verb.target in states
    assert set(table.in_flight) <= states


def test_every_reason_code_in_the_code_is_in_the_catalogue():
    unknown = {
        node.value.value: path.name
        for path in OURS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.keyword)
        and node.arg == "code"
        and isinstance(node.value, ast.Constant)
        and str(node.value.value).isupper()
        and node.value.value not in REASONS
    }
    assert unknown == {}
