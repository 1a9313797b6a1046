"""The lab's NVUE switch: revisions, refusals, faults, and what survives a kill."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from aiohttp import encode_basic_auth
from aiohttp.test_utils import TestClient, TestServer

from gpucloud.lab.hardware.switch import Switch, build_app, ports_of_rack

RACK = json.loads((Path(__file__).parents[2] / "gpucloud/lab/rack.json").read_text())
AGREE = {"ays": "ays_yes"}


class Acts:
    def __init__(self):
        self.lines = []

    def write(self, actor, object, verb, before, after):
        self.lines.append((actor, object, verb, before, after))


@pytest.fixture
def acts():
    return Acts()


@pytest.fixture
def faults():
    return {}


@pytest.fixture
def make(tmp_path, acts, faults):
    def start():
        ports = ports_of_rack(RACK, "leaf-1")
        return Switch("leaf-1", ports, tmp_path, acts, lambda port: faults.get(port, {}))

    return start


def talk(switch, story, apply_seconds=0.0, password="cumulus"):
    """Run one conversation with the switch's REST door."""

    async def run():
        app = build_app(switch, "cumulus", "cumulus", apply_seconds)
        headers = {"Authorization": encode_basic_auth("cumulus", password)}
        async with TestClient(TestServer(app), headers=headers) as client:
            return await story(Nvue(client))

    return asyncio.run(run())


class Nvue:
    def __init__(self, client):
        self.client = client

    async def call(self, verb, path, body=None):
        async with self.client.request(verb, "/nvue_v1" + path, json=body) as answer:
            return answer.status, await answer.json()

    async def get(self, path):
        return (await self.call("GET", path))[1]

    async def begin(self):
        (revision,) = (await self.call("POST", "/revision"))[1]
        return quote(revision, safe="")

    async def apply(self, revision, prompt=AGREE):
        body = {"state": "apply", "auto-prompt": prompt}
        await self.call("PATCH", f"/revision/{revision}", body)
        for _ in range(100):
            answer = await self.get(f"/revision/{revision}")
            if answer["state"] != "apply":
                return answer
            await asyncio.sleep(0.005)
        raise AssertionError("the revision is never decided")

    async def set_access(self, port, vlan, also_vlan=True):
        revision = await self.begin()
        if also_vlan:
            path = f"/bridge/domain/br_default?rev={revision}"
            await self.call("PATCH", path, {"vlan": {str(vlan): {}}})
        await self.call("PATCH", f"/interface/{port}?rev={revision}", access(vlan))
        return await self.apply(revision)


def access(vlan):
    return {"bridge": {"domain": {"br_default": {"access": vlan}}}}


def leaf(tree):
    return tree["bridge"]["domain"]["br_default"]


def test_at_first_start_servers_are_parked_and_the_shared_endpoint_carries_nothing(make, acts):
    switch = make()
    assert switch.access_vlan("swp1") == 10
    assert switch.access_vlan("swp48") is None
    assert not switch.carries("swp48", 100)
    assert ("switch:leaf-1", "bare-metal-1/eno1", "vlan", None, 10) in acts.lines


def test_an_applied_revision_moves_the_port_and_writes_the_act(make, acts):
    switch = make()

    async def story(nvue):
        assert (await nvue.set_access("swp3", 100))["state"] == "applied"
        operational = await nvue.get("/interface/swp3?rev=operational")
        members = await nvue.get("/bridge/domain/br_default/vlan/100?rev=operational")
        return leaf(operational), members

    operational, members = talk(switch, story)
    assert operational["access"] == 100
    assert members["port"] == {"swp3": {}}
    assert switch.access_vlan("swp3") == 100
    assert acts.lines[-1] == ("switch:leaf-1", "bare-metal-2/eno1", "vlan", 10, 100)


def test_nothing_moves_before_the_apply(make, acts):
    switch = make()

    async def story(nvue):
        revision = await nvue.begin()
        await nvue.call("PATCH", f"/interface/swp3?rev={revision}", access(4000))
        seen = await nvue.get(f"/interface/swp3?rev={revision}")
        return leaf(seen)["access"], leaf(await nvue.get("/interface/swp3"))["access"]

    assert talk(switch, story) == (4000, 10)
    assert switch.access_vlan("swp3") == 10


def test_a_root_patch_changes_many_ports_in_one_revision(make):
    switch = make()
    body = {
        "bridge": {"domain": {"br_default": {"vlan": {"101": {}}}}},
        "interface": {"swp3": access(101), "swp4": access(101)},
    }

    async def story(nvue):
        revision = await nvue.begin()
        await nvue.call("PATCH", f"/?rev={revision}", body)
        return (await nvue.apply(revision))["state"]

    assert talk(switch, story) == "applied"
    assert [switch.access_vlan(p) for p in ("swp3", "swp4", "swp5")] == [101, 101, 10]


def test_the_shared_endpoint_becomes_a_trunk(make, acts):
    switch = make()
    body = {"access": None, "untagged": 1, "vlan": {"100": {}, "101": {}}}

    async def story(nvue):
        revision = await nvue.begin()
        path = f"/interface/swp48/bridge/domain/br_default?rev={revision}"
        await nvue.call("PATCH", path, body)
        await nvue.apply(revision)

    talk(switch, story)
    assert switch.carries("swp48", 100) and switch.carries("swp48", 101)
    assert not switch.carries("swp48", 10)
    assert acts.lines[-1][-1] == {"untagged": 1, "vlans": [100, 101]}


def test_a_port_without_an_access_vlan_is_in_quarantine_not_in_all(make):
    switch = make()

    async def story(nvue):
        revision = await nvue.begin()
        await nvue.call("PATCH", f"/interface/swp3?rev={revision}", access(None))
        await nvue.apply(revision)
        return leaf(await nvue.get("/interface/swp3?rev=operational"))["access"]

    assert talk(switch, story) == 4000
    assert switch.access_vlan("swp3") == 4000
    assert not switch.carries("swp3", 10)


def test_a_revision_is_refused_when_another_changed_the_same_port_meanwhile(make):
    switch = make()

    async def story(nvue):
        late = await nvue.begin()
        await nvue.call("PATCH", f"/interface/swp3?rev={late}", access(10))
        await nvue.set_access("swp3", 100)
        return await nvue.apply(late)

    answer = talk(switch, story)
    assert answer["state"] == "invalid"
    assert "swp3" in answer["transition"]["issue"]["00000"]["message"]
    assert switch.access_vlan("swp3") == 100


def test_revisions_of_different_ports_do_not_conflict(make):
    switch = make()

    async def story(nvue):
        late = await nvue.begin()
        await nvue.call("PATCH", f"/interface/swp4?rev={late}", access(4000))
        await nvue.set_access("swp3", 100)
        return (await nvue.apply(late))["state"]

    assert talk(switch, story) == "applied"
    assert (switch.access_vlan("swp3"), switch.access_vlan("swp4")) == (100, 4000)


def test_an_access_vlan_that_the_bridge_lacks_is_refused(make):
    switch = make()
    answer = talk(switch, lambda nvue: nvue.set_access("swp3", 150, also_vlan=False))
    assert answer["state"] == "invalid"
    assert "VLAN 150" in answer["transition"]["issue"]["00000"]["message"]
    assert switch.access_vlan("swp3") == 10


def test_a_vlan_in_use_cannot_be_taken_out_of_the_bridge(make):
    switch = make()

    async def story(nvue):
        revision = await nvue.begin()
        body = {"vlan": {"10": None}}
        await nvue.call("PATCH", f"/bridge/domain/br_default?rev={revision}", body)
        return (await nvue.apply(revision))["state"]

    assert talk(switch, story) == "invalid"


def test_an_apply_that_nobody_agreed_to_fails(make):
    switch = make()

    async def story(nvue):
        revision = await nvue.begin()
        await nvue.call("PATCH", f"/interface/swp3?rev={revision}", access(4000))
        return (await nvue.apply(revision, prompt={}))["state"]

    assert talk(switch, story) == "ays_fail"
    assert switch.access_vlan("swp3") == 10


def test_a_repeated_apply_changes_nothing(make, acts):
    switch = make()

    async def story(nvue):
        revision = await nvue.begin()
        await nvue.call("PATCH", f"/interface/swp3?rev={revision}", access(4000))
        return [(await nvue.apply(revision))["state"] for _ in range(2)]

    assert talk(switch, story) == ["applied", "applied"]
    assert [line[-1] for line in acts.lines if line[1] == "bare-metal-2/eno1"] == [10, 4000]


@pytest.mark.parametrize(
    ("fault", "state", "accepted", "vlan"),
    [
        ({"switch_refuses": True}, "invalid", 10, 10),
        ({"switch_ignores": True}, "applied", 100, 10),
        ({"wrong_vlan": 77}, "applied", 100, 77),
    ],
)
def test_faults_show_in_the_operational_view(make, faults, fault, state, accepted, vlan):
    faults["swp3"] = fault
    switch = make()

    async def story(nvue):
        answer = await nvue.set_access("swp3", 100)
        applied = leaf(await nvue.get("/interface/swp3?rev=applied"))["access"]
        real = leaf(await nvue.get("/interface/swp3?rev=operational"))["access"]
        return answer["state"], applied, real

    assert talk(switch, story) == (state, accepted, vlan)
    assert switch.access_vlan("swp3") == vlan
    assert switch.access_vlan("swp5") == 10


def test_everything_survives_a_kill_even_a_half_applied_revision(make, acts):
    async def story(nvue):
        await nvue.set_access("swp5", 102)
        revision = await nvue.begin()
        await nvue.call("PATCH", f"/interface/swp3?rev={revision}", access(102))
        return revision

    revision = talk(make(), story)

    async def ask_and_die(nvue):
        body = {"state": "apply", "auto-prompt": AGREE}
        return (await nvue.call("PATCH", f"/revision/{revision}", body))[1]["state"]

    assert talk(make(), ask_and_die, apply_seconds=600) == "apply"
    again = make()
    assert again.access_vlan("swp3") == 10

    async def look(nvue):
        return (await nvue.get(f"/revision/{revision}"))["state"]

    assert talk(again, look) == "applied"
    assert (again.access_vlan("swp3"), again.access_vlan("swp5")) == (102, 102)
    assert acts.lines[-1] == ("switch:leaf-1", "bare-metal-2/eno1", "vlan", 10, 102)


def test_saving_copies_the_applied_configuration_to_startup(make):
    async def story(nvue):
        await nvue.set_access("swp3", 100)
        before = leaf(await nvue.get("/interface/swp3?rev=startup"))["access"]
        status, _ = await nvue.call(
            "PATCH", "/revision/applied", {"state": "save", "auto-prompt": AGREE}
        )
        return before, status, leaf(await nvue.get("/interface/swp3?rev=startup"))["access"]

    assert talk(make(), story) == (10, 200, 100)


def test_a_wrong_password_is_turned_away(make):
    async def story(nvue):
        return (await nvue.call("GET", "/interface"))[0]

    assert talk(make(), story, password="wrong") == 401


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/interface/swp3?rev={rev}", access(5000), 400),
        ("/interface/eth7?rev={rev}", access(10), 400),
        ("/interface/swp3?rev=nothing", access(10), 404),
        ("/interface/swp3", access(10), 400),
        ("/?rev={rev}", {"interface": "swp3"}, 400),
    ],
)
def test_bad_patches_are_answered_with_a_sentence(make, path, body, status):
    async def story(nvue):
        return await nvue.call("PATCH", path.format(rev=await nvue.begin()), body)

    seen, answer = talk(make(), story)
    assert seen == status
    assert answer["detail"].endswith(".")
