"""The one-time key of an operation and the session it turns into."""

from __future__ import annotations

import uuid

import pytest

from gpucloud import vault
from gpucloud.engine.steps import steps_of
from gpucloud.models import Event, Secret
from provisioning import agents
from provisioning.models import AgentRun

pytestmark = pytest.mark.django_db
MAC = "52:54:00:10:01:01"


def key_of(run):
    return vault.get("agent_run", run.uid, "key")


def say_hello(run, mac=MAC, system_uuid=""):
    return agents.hello(key_of(run), system_uuid, [mac], "SN1", "10.10.0.11")


def refusal(call, *arguments):
    with pytest.raises(agents.Refused) as caught:
        call(*arguments)
    return caught.value.status


def test_an_operation_has_one_open_run_however_often_it_is_asked_for(make_operation):
    operation = make_operation()
    first, url = agents.open_run(operation, "wipe")
    again, same = agents.open_run(operation, "wipe")
    assert (first.pk, url) == (again.pk, same)
    assert url.endswith(f"/{key_of(first)}/agent.iso")


def test_the_key_is_only_in_the_vault(make_operation):
    run, _ = agents.open_run(make_operation(), "wipe")
    assert key_of(run) not in str(AgentRun.objects.values().get())
    assert key_of(run).encode() not in bytes(Secret.objects.get(kind="agent_run").sealed)


def test_renewing_a_run_nobody_has_used_makes_its_old_key_worthless(make_operation):
    operation = make_operation()
    run, _ = agents.open_run(operation, "wipe")
    old = key_of(run)
    renewed, _ = agents.open_run(operation, "wipe", renew=True)
    assert renewed.pk == run.pk
    assert refusal(agents.hello, old, "", [MAC], "", "") == 404
    assert say_hello(renewed)


def test_renewing_a_run_whose_key_was_used_opens_another_one(make_operation):
    operation = make_operation()
    run, _ = agents.open_run(operation, "wipe")
    token = say_hello(run)
    other, _ = agents.open_run(operation, "wipe", renew=True)
    assert other.pk != run.pk
    assert refusal(agents.plan, token) == 410


def test_a_key_is_good_for_one_hello(make_operation):
    run, _ = agents.open_run(make_operation(), "wipe")
    say_hello(run)
    assert refusal(say_hello, run) == 410


def test_an_unknown_key_is_refused():
    assert refusal(agents.hello, "x" * 32, "", [MAC], "", "") == 404


@pytest.mark.django_db
def test_a_server_is_known_by_its_system_uuid_in_either_byte_order(make_operation):
    operation = make_operation()
    swapped = uuid.UUID(bytes_le=uuid.UUID(operation.server.system_uuid).bytes)
    run, _ = agents.open_run(operation, "wipe")
    assert say_hello(run, mac="52:54:00:99:99:99", system_uuid=str(swapped).upper())


def test_another_machine_with_the_key_is_refused_and_told_of_once(make_operation):
    operation = make_operation()
    run, _ = agents.open_run(operation, "wipe")
    stranger = {"mac": "52:54:00:99:99:99", "system_uuid": str(uuid.uuid4())}
    for _ in range(3):
        assert refusal(lambda: say_hello(run, **stranger)) == 403
    event = Event.objects.get(verb="agent refused")
    assert event.object_uid == operation.server.uid
    assert say_hello(run), "the right machine may still come"


def test_the_plan_names_every_drive_of_the_inventory(make_operation):
    operation = make_operation(drives=("A", "B", "C"))
    run, _ = agents.open_run(operation, "wipe")
    plan = agents.plan(say_hello(run))
    assert plan["operation"] == str(operation.uid)
    assert (plan["verb"], plan["after"], plan["readback_samples"]) == ("wipe", "wait", 64)
    assert [drive["serial"] for drive in plan["drives"]] == ["A", "B", "C"]


def test_no_plan_is_given_once_the_operation_is_over(make_operation):
    operation = make_operation()
    run, _ = agents.open_run(operation, "wipe")
    token = say_hello(run)
    type(operation).objects.update(state="cancelled")
    assert refusal(agents.plan, token) == 410


def test_progress_never_goes_back(make_operation):
    run, _ = agents.open_run(make_operation(), "wipe")
    token = say_hello(run)
    agents.progress(token, 40, "nvme0: sanitize")
    agents.progress(token, 30, "nvme1: sanitize")
    run.refresh_from_db()
    assert (run.percent, run.message) == (40, "nvme1: sanitize")


def test_a_result_is_kept_once(make_operation):
    run, _ = agents.open_run(make_operation(), "wipe")
    token = say_hello(run)
    agents.result(token, True, "", {"drives": [{"serial": "S1"}]})
    agents.result(token, False, "later", {})
    run.refresh_from_db()
    assert run.ok is True
    assert run.report == {"drives": [{"serial": "S1"}]}
    assert Event.objects.filter(verb="agent result").count() == 1


def test_every_word_of_the_agent_makes_the_engine_look_at_once(make_operation):
    operation = make_operation()
    run, _ = agents.open_run(operation, "wipe")
    steps = steps_of("operation", operation.uid)
    calls = [
        lambda: say_hello(run),
        lambda: agents.progress(tokens[0], 1, "x"),
        lambda: agents.result(tokens[0], True, "", {}),
    ]
    tokens = []
    for call in calls:
        steps.update(next_try_at="2100-01-01T00:00:00Z")
        tokens.append(call())
        assert steps.get().next_try_at.year < 2100


def test_a_closed_run_opens_nothing(make_operation):
    run, _ = agents.open_run(make_operation(), "wipe")
    key, token = key_of(run), say_hello(run)
    agents.close_run(run)
    agents.close_run(run)
    assert not agents.media_open(key)
    assert refusal(agents.hello, key, "", [MAC], "", "") == 410
    assert refusal(agents.progress, token, 1, "") == 410
    with pytest.raises(LookupError):
        agents.media_url(run)
