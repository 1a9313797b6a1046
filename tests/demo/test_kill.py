"""SIGKILL of any process at any moment: every claim ends ready, every release ends available."""

from __future__ import annotations

import time
import urllib.error
from pathlib import Path

import pytest

from tests.demo.cloud import PROVISIONING, RACK, Cloud
from tests.demo.judge import Judge
from tests.demo.test_main_job import SEEDS, free_port, markers

pytestmark = pytest.mark.demo

# Where worker-engine dies by itself, once each: between what a step does and what is recorded.
CRASHES = (
    "before operation configure",
    "after operation setup",
    "recorded operation install",
    "after operation stop",
    "after operation move",
    "after operation join",
    "after operation drain",
    "after operation return",
    "before operation wipe",
    "after operation check",
)
# When a step of a claim or of a release is first seen begun: what is killed.
CLAIMING = (
    ("select", "sealer"),
    ("configure", "sweep"),
    ("setup", "worker-engine"),
    ("install", "lab-kube"),
    ("stop", "watcher"),
    ("move", "lab-hardware"),
    ("boot", "worker-engine"),
    ("join", "web"),
    ("verify", "valkey"),
)
RELEASING = (
    ("drain", "supervisor"),
    ("drain", "door"),
    ("stop", "sweep"),
    ("return", "worker-engine"),
    ("deprovision", "lab-kube"),
    ("wipe", "sealer"),
    ("check", "valkey"),
)
# A machine that runs from memory does not survive the power cut that the lab's death is. The door
# dies before its media are read: else the agent is waited for as long as a POST may last.
IN_MEMORY = ("install", "wipe")
CLUSTERS = (("default", "one"), ("tenant1", "two"))


class Patient(Cloud):
    """A cloud whose web may be gone for a while: what can be asked again is."""

    def call(self, method, path, body=None, token=""):
        ends = time.monotonic() + 45
        while True:
            try:
                status, answer = super().call(method, path, body, token)
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                if method == "POST" or time.monotonic() > ends:
                    raise
            else:
                if status < 500 or time.monotonic() > ends:
                    return status, answer
            time.sleep(0.3)

    def end(self, name):
        """SIGKILL; a killed supervisor is started again by hand, all others by it."""
        try:
            self.kill(name)
        except (FileNotFoundError, ProcessLookupError):
            return False
        if name == "supervisor":
            self.process.wait(10)
            self.start()
        return True

    def operations(self, kind):
        return {one["uid"] for one in self.listed(f"/operations/?operation={kind}")}

    def begun(self, operations):
        """(step name, state) of every step of these operations that has begun."""
        found = set()
        for uid in operations:
            for step in self.get(f"/operations/{uid}/")["steps"]:
                if step["state"] not in ("todo", "skipped"):
                    found.add((step["name"], step["state"]))
        return found


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    made = Patient(
        folder,
        free_port(),
        # A successor waits longer than the lab's shortest POST, though far less than a real one.
        LAB_POST_SECONDS="40",
        GPUCLOUD_CRASH_AT=",".join(f"{name}:1" for name in CRASHES),
        GPUCLOUD_CRASH_MARKER=str(folder / "crashes"),
    )
    made.start()
    try:
        made.until("the rack available", lambda: made.servers_available(*SEEDS), 90)
        yield made
    finally:
        made.stop()


def crashed(cloud):
    marker = Path(cloud.environment["GPUCLOUD_CRASH_MARKER"])
    return marker.read_text().splitlines() if marker.exists() else []


def create_both(cloud):
    pools = {"gpu": "metal3.gpu-server", "cpu": "metal3.cpu-server"}
    cloud.create("default", "one", pools, segment="rack")
    cloud.create("tenant1", "two", {"gpu": "metal3.gpu-b", "cpu": "metal3.cpu-b"})


def delete_both(cloud):
    for tenant, name in CLUSTERS:
        assert cloud.call("DELETE", f"/clusters/{tenant}/{name}/")[0] == 202


def wait_ready(cloud, seconds):
    for tenant, name in CLUSTERS:
        cloud.ready(tenant, name, 2, seconds)


def wait_gone(cloud, seconds):
    for tenant, name in CLUSTERS:
        path = f"/clusters/{tenant}/{name}/"
        cloud.until(f"{name} gone", lambda path=path: cloud.call("GET", path)[0] == 404, seconds)
    cloud.until("the rack available", lambda: cloud.servers_available(*SEEDS), 60)


def assert_journeys_were_right(cloud, since):
    for name in SEEDS:
        judge = Judge(cloud, name, since)
        assert judge.violations() == []
        assert judge.moved_only_while_off()
        tenants_vlans = set(judge.vlans("eno1")) - {PROVISIONING, 4000}
        assert len(tenants_vlans) == 1 and (RACK in tenants_vlans) == (name in SEEDS[:2])
        assert all(judge.moved_through_quarantine(nic, *tenants_vlans) for nic in ("eno1", "eno2"))


def assert_nothing_is_left(cloud):
    for name in SEEDS:
        machine = cloud.machine(name)
        assert machine["power"].lower() == "off"
        assert [port["vlan"] for port in machine["ports"]] == [PROVISIONING, PROVISIONING]
        assert markers(cloud, name) == []
        server = cloud.get(f"/servers/{name}/")
        assert (server["state"], server["claim"]) == ("available", None)
    assert [one for one in cloud.listed("/node-claims/") if one["state"] != "gone"] == []
    assert cloud.listed("/operations/?state=active") == []
    live = [one for one in cloud.listed("/attachments/") if one["state"] != "gone"]
    assert [one for one in live if one["claim_uid"] or one["segment"].endswith("/rack")] == []
    assert [one["name"] for one in cloud.listed("/segments/") if one["role"] == "tenant"] == [
        "rack"
    ]
    for tenant, _ in CLUSTERS:
        used = cloud.get(f"/tenants/{tenant}/")["usage"]
        assert used["servers"]["used"] == used["gpus"]["used"] == 0


def kill_along(cloud, kind, kills, done, seconds):
    """Kill what the plan says when its step is first seen begun; until `done`."""
    left = list(kills)
    old = cloud.operations(kind)
    ends = time.monotonic() + seconds
    while left or not done():
        assert time.monotonic() < ends, (left, cloud.story())
        begun = cloud.begun(cloud.operations(kind) - old)
        at, victim = left[0] if left else ("", "")
        memory = any(name in IN_MEMORY and state != "done" for name, state in begun)
        seen = any(name == at for name, _ in begun)
        if seen and not (victim == "lab-hardware" and memory) and cloud.end(victim):
            left.pop(0)
        time.sleep(0.2)


def test_a_worker_that_dies_between_doing_and_recording_is_succeeded(cloud):
    since = cloud.acts()[-1]["seq"]
    create_both(cloud)
    wait_ready(cloud, 240)
    delete_both(cloud)
    wait_gone(cloud, 240)
    assert sorted(crashed(cloud)) == sorted(CRASHES)
    assert_journeys_were_right(cloud, since)
    assert_nothing_is_left(cloud)


def test_every_process_may_be_killed_at_any_moment(cloud):
    since = cloud.acts()[-1]["seq"]

    def all_ready():
        claims = [one for at in CLUSTERS for one in cloud.claims(*at)]
        return len(claims) == 4 and all(one["state"] == "ready" for one in claims)

    create_both(cloud)
    kill_along(cloud, "claim", CLAIMING, all_ready, 240)
    wait_ready(cloud, 60)
    delete_both(cloud)
    kill_along(cloud, "release", RELEASING, lambda: cloud.servers_available(*SEEDS), 240)
    wait_gone(cloud, 60)
    assert_journeys_were_right(cloud, since)
    assert_nothing_is_left(cloud)
