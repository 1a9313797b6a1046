"""Each link of the chain is broken in the lab; the job stops there with its code, and recovers."""

from __future__ import annotations

import pytest

from tests.demo.cloud import Cloud
from tests.demo.test_main_job import SEEDS, free_port

pytestmark = pytest.mark.demo

POOLS = {
    "cpu": "metal3.cpu-server",
    "gpu": "metal3.gpu-server",
    "cpu-b": "metal3.cpu-b",
    "gpu-b": "metal3.gpu-b",
}
# Fault by server: the step that must stop, and its reason code.
INSTALLING = {
    "bare-metal-1": ({"wrong_vlan": 777}, "move", "PORT_MISMATCH"),
    "bare-metal-2": ({"corrupt_image": True}, "install", "IMAGE_CHECKSUM"),
    "bare-metal-3": ({"ignore_boot": True}, "install", "INSTALL_SILENT"),
    "bare-metal-4": ({"ignore_power": True}, "install", "POWER_IGNORED"),
}
BOOTING = {
    "bare-metal-1": ({"lose_network_data": True}, "boot", "NOT_BOOTED"),
    "bare-metal-2": ({"refuse_join": True}, "boot", "NOT_BOOTED"),
}
WIPING = {
    "bare-metal-1": ({"wipe_fails": True}, "check", "WIPE_FAILED"),
    "bare-metal-2": ({"wipe_does_nothing": True}, "check", "READBACK_NOT_BLANK"),
    "bare-metal-3": ({"hide_drive": "nvme1n1"}, "check", "DRIVE_SET_MISMATCH"),
}


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    # Deadlines are shortened, so that a step which waits for what never comes ends within the test.
    made = Cloud(tmp_path_factory.mktemp("demo"), free_port(), TIME_FACTOR="0.05")
    made.start()
    try:
        made.until("the rack available", lambda: made.servers_available(*SEEDS), 90)
        yield made
    finally:
        made.stop()


def break_links(cloud, broken):
    for name, (faults, _, _) in broken.items():
        cloud.faults(name, **faults)


def claim_on(cloud, server):
    found = [one for one in cloud.listed("/node-claims/") if one["server"] == server]
    return next((one for one in found if one["state"] != "gone"), None)


def stopped(cloud, server, kind):
    """The operation of this kind of the server's claim that has failed, with its failed step."""

    def look():
        claim = claim_on(cloud, server)
        if claim is None:
            return None
        for operation in cloud.listed(
            f"/operations/?claim={claim['uid']}&state=failed&operation={kind}"
        ):
            for step in cloud.get(f"/operations/{operation['uid']}/")["steps"]:
                if step["state"] == "failed":
                    return claim, operation, step
        return None

    return cloud.until(f"a step of {server} stops", look, 240)


def recover(cloud, broken, kind):
    """Mend the lab and retry every claim."""
    for name in broken:
        claim, _, _ = stopped(cloud, name, kind)
        cloud.faults(name)
        status, answer = cloud.call(
            "POST", f"/node-claims/{claim['tenant']}/{claim['name']}/retry/", {}
        )
        assert status == 202, answer


def assert_stopped_where_broken(cloud, broken, kind):
    for name, (faults, step_name, code) in broken.items():
        claim, _, step = stopped(cloud, name, kind)
        seen = (name, step["name"], step["code"])
        assert seen == (name, step_name, code), (faults, step["sentence"])
        assert claim["server"] == name, "a failed claim still holds its server"
        assert step["sentence"] and "Traceback" not in step["sentence"]


def test_a_broken_link_stops_the_job_at_its_own_step_and_a_retry_goes_on(cloud):
    break_links(cloud, INSTALLING)
    cloud.create("default", "chain", POOLS, segment="rack")
    assert_stopped_where_broken(cloud, INSTALLING, "claim")
    recover(cloud, INSTALLING, "claim")
    cloud.ready("default", "chain", 4, 240)
    assert [one["actor"] for one in cloud.acts(verb="violation")] == []
    cloud.gone("default", "chain")
    cloud.until("the rack available", lambda: cloud.servers_available(*SEEDS), 60)


def test_a_system_without_network_or_token_never_joins_and_is_released(cloud):
    break_links(cloud, BOOTING)
    cloud.create("default", "chain", POOLS, segment="rack")
    assert_stopped_where_broken(cloud, BOOTING, "claim")
    for name in BOOTING:
        cloud.faults(name)
    break_links(cloud, WIPING)
    status, _ = cloud.call("DELETE", "/clusters/default/chain/")
    assert status == 202
    assert_stopped_where_broken(cloud, WIPING, "release")
    cloud.until("the fourth comes home", lambda: cloud.servers_available("bare-metal-4"), 120)
    for name in WIPING:
        assert cloud.get(f"/servers/{name}/")["state"] == "failed"
    recover(cloud, WIPING, "release")
    cloud.until("the rack available", lambda: cloud.servers_available(*SEEDS), 240)
    cloud.until(
        "the cluster gone", lambda: cloud.call("GET", "/clusters/default/chain/")[0] == 404, 60
    )
