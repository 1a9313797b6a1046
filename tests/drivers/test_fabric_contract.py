"""What every FabricDriver promises, asked of the fake and of NVUE against the lab's switch."""

from __future__ import annotations

import time
import uuid

import pytest

from gpucloud.drivers import ConfigError, DriverError, call_budget
from gpucloud.lab.hardware.switch import Port, Switch, build_app
from gpucloud.lab.tls import device_context
from gpucloud.wire import read_certificate
from network.drivers import AttachSpec, PortRef, PortSeen, SegmentSpec
from network.drivers.fake import FakeFabric
from network.drivers.nvue import Nvue, NvueConfig

SWP1, SWP2, SHARED = (PortRef("leaf-1", name) for name in ("swp1", "swp2", "swp48"))


def segment(vlan, name="s"):
    return SegmentSpec(uid=str(uuid.UUID(int=vlan)), name=f"{name}{vlan}", vlan=vlan, role="tenant")


RACK, OTHER, QUARANTINE = segment(100), segment(101), segment(4000, "quarantine")


class FakeStage:
    """The fake and what can be done to its world."""

    def __init__(self):
        self.name = str(uuid.uuid4())
        self.driver = self.login()
        self.world = self.driver.world
        self.driver.world.program({SWP1: PortSeen(SWP1, 10), SWP2: PortSeen(SWP2, 10)})

    def login(self):
        return FakeFabric(FakeFabric.Config.from_dict({"name": self.name, "looks": 2}))

    def refuse(self):
        self.world.fault = "refuses"

    def ignore(self):
        self.world.fault = "ignores"

    def mistake(self, vlan):
        self.world.wrong_vlan = vlan

    def mend(self):
        self.world.fault, self.world.wrong_vlan = "", None

    def unplug(self):
        self.world.fault = "unreachable"

    def really(self, port):
        return self.world.seen(port).access


class Acts:
    def __init__(self):
        self.lines = []

    def write(self, *line):
        self.lines.append(line)


class LabStage:
    """NVUE over https, against the lab's switch."""

    def __init__(self, serve, folder, apply_seconds=0.01):
        self.faults = {}
        ports = {
            "swp1": Port("bm-1/eno1", access=10),
            "swp2": Port("bm-1/eno2", access=10),
            "swp48": Port("knode-1", trunk=True),
        }
        self.acts = Acts()
        self.switch = Switch("leaf-1", ports, folder, self.acts, lambda port: self.faults)
        app = build_app(self.switch, "cumulus", "right", apply_seconds=apply_seconds)
        self.peer = serve(app, device_context(folder / "switch.pem", "leaf-1"))
        self.values = {
            "switches": {"leaf-1": self.peer.url},
            "username": "cumulus",
            "password": "right",
            "certificates": {"leaf-1": read_certificate(self.peer.url, 5)},
        }
        self.driver = self.login()

    def login(self, **values):
        return Nvue(Nvue.Config.from_dict({**self.values, **values}))

    def finish(self):
        """Let the switch decide now what it is applying, oldest first."""

        async def decide():
            self.switch.finish_interrupted()

        self.peer.run(decide())

    def refuse(self):
        self.faults["switch_refuses"] = True

    def ignore(self):
        self.faults["switch_ignores"] = True

    def mistake(self, vlan):
        self.faults["wrong_vlan"] = vlan

    def mend(self):
        self.faults.clear()

    def unplug(self):
        self.driver = self.login(switches={"leaf-1": "https://127.0.0.1:9"})

    def really(self, port):
        return self.switch.access_vlan(port.port)


@pytest.fixture(params=["fake", "nvue"])
def stage(request, serve, tmp_path):
    return FakeStage() if request.param == "fake" else LabStage(serve, tmp_path)


@pytest.fixture
def lab(serve, tmp_path):
    return LabStage(serve, tmp_path)


def until_done(call, looks=200):
    """Look again as the engine does, handing the ref back; answers the last Progress."""
    ref = ""
    for _ in range(looks):
        progress = call(ref)
        assert progress.detail and progress.wait >= 0
        if progress.done:
            return progress
        ref = progress.ref
        time.sleep(0.005)
    raise AssertionError(f"not done: {progress}")


def ensure(stage, *segments):
    for one in segments:
        until_done(lambda ref, one=one: stage.driver.ensure_segment(one))


def attach(stage, *specs):
    return until_done(lambda ref: stage.driver.attach(specs, ref))


def detach(stage, *specs):
    return until_done(lambda ref: stage.driver.detach(specs, ref))


def test_check_of_a_working_fabric_finds_nothing(stage):
    assert stage.driver.check() == []


def test_a_segment_exists_after_ensure_and_is_gone_after_remove(stage):
    assert not stage.driver.observe(RACK).exists
    ensure(stage, RACK)
    assert stage.driver.observe(RACK).exists
    until_done(lambda ref: stage.driver.remove_segment(RACK))
    assert not stage.driver.observe(RACK).exists


def test_a_move_takes_all_ports_and_is_read_back(stage):
    ensure(stage, RACK)
    progress = attach(stage, AttachSpec(SWP1, RACK), AttachSpec(SWP2, RACK))
    assert [port["access"] for port in progress.evidence["ports"]] == [100, 100]
    assert [seen.access for seen in stage.driver.ports((SWP2, SWP1))] == [100, 100]
    assert {seen.port for seen in stage.driver.observe(RACK).ports} == {SWP1, SWP2}
    assert stage.really(SWP1) == stage.really(SWP2) == 100


def test_the_first_answer_of_a_move_is_not_yet_done(stage):
    ensure(stage, RACK)
    progress = stage.driver.attach((AttachSpec(SWP1, RACK),))
    assert not progress.done and progress.ref


def test_a_move_that_is_already_so_is_done_at_once(stage):
    ensure(stage, RACK)
    attach(stage, AttachSpec(SWP1, RACK))
    assert stage.login().attach((AttachSpec(SWP1, RACK),)).done


def test_a_change_whose_ref_was_lost_still_ends(stage):
    ensure(stage, RACK)
    stage.driver.attach((AttachSpec(SWP1, RACK),))
    stage.driver = stage.login()
    attach(stage, AttachSpec(SWP1, RACK))
    assert stage.really(SWP1) == 100


def test_a_caller_that_keeps_no_ref_gets_there_too(stage):
    ensure(stage, RACK)
    until_done(lambda ref: stage.login().attach((AttachSpec(SHARED, RACK, "trunk"),)))
    (seen,) = stage.driver.ports((SHARED,))
    assert seen.tagged == (100,)


def test_an_access_port_that_leaves_goes_to_quarantine(stage):
    ensure(stage, RACK)
    attach(stage, AttachSpec(SWP1, RACK))
    detach(stage, AttachSpec(SWP1, RACK))
    (seen,) = stage.driver.ports((SWP1,))
    assert (seen.access, seen.tagged) == (4000, ())
    assert stage.really(SWP1) == 4000
    assert stage.driver.observe(RACK).ports == ()


def test_a_trunk_carries_each_segment_and_loses_only_the_one_that_leaves(stage):
    ensure(stage, RACK, OTHER)
    attach(stage, AttachSpec(SHARED, RACK, "trunk"))
    attach(stage, AttachSpec(SHARED, OTHER, "trunk"))
    (seen,) = stage.driver.ports((SHARED,))
    assert (seen.access, seen.tagged) == (None, (100, 101))
    detach(stage, AttachSpec(SHARED, RACK, "trunk"))
    (seen,) = stage.driver.ports((SHARED,))
    assert seen.tagged == (101,)


def test_a_trunk_that_loses_its_last_segment_carries_none_rather_than_all(stage):
    ensure(stage, RACK)
    attach(stage, AttachSpec(SHARED, RACK, "trunk"))
    detach(stage, AttachSpec(SHARED, RACK, "trunk"))
    (seen,) = stage.driver.ports((SHARED,))
    assert (seen.access, seen.tagged) == (4000, ())
    attach(stage, AttachSpec(SHARED, RACK, "trunk"))
    (seen,) = stage.driver.ports((SHARED,))
    assert (seen.access, seen.tagged) == (None, (100,))


def test_a_refused_change_says_so_and_moves_nothing(stage):
    ensure(stage, RACK)
    stage.refuse()
    with pytest.raises(DriverError) as error:
        attach(stage, AttachSpec(SWP1, RACK), AttachSpec(SWP2, RACK))
    assert error.value.code == "SWITCH_REFUSED" and error.value.permanent
    assert stage.really(SWP1) == stage.really(SWP2) == 10


@pytest.mark.parametrize(("verb", "values"), [("ignore", ()), ("mistake", (77,))])
def test_an_accepted_change_that_reads_back_differently_is_an_error(stage, verb, values):
    ensure(stage, RACK)
    getattr(stage, verb)(*values)
    with pytest.raises(DriverError) as error:
        attach(stage, AttachSpec(SWP1, RACK))
    assert error.value.code == "PORT_MISMATCH" and error.value.permanent
    assert error.value.hint


@pytest.mark.parametrize("verb", ["refuse", "ignore"])
def test_a_retry_after_the_switch_was_mended_succeeds(stage, verb):
    ensure(stage, RACK)
    getattr(stage, verb)()
    with pytest.raises(DriverError):
        attach(stage, AttachSpec(SWP1, RACK))
    stage.mend()
    attach(stage, AttachSpec(SWP1, RACK))
    assert stage.really(SWP1) == 100


def test_an_unreachable_fabric_is_a_passing_error(stage):
    stage.unplug()
    with pytest.raises(DriverError) as error:
        stage.driver.ports((SWP1,))
    assert error.value.code == "SWITCH_UNREACHABLE" and not error.value.permanent
    assert stage.driver.check() != []


def test_a_segment_with_ports_is_not_removed(stage):
    ensure(stage, RACK)
    attach(stage, AttachSpec(SWP1, RACK))
    with pytest.raises(DriverError) as error:
        stage.driver.remove_segment(RACK)
    assert error.value.permanent
    assert stage.driver.observe(RACK).exists


def test_the_quarantine_segment_is_never_removed(stage):
    with pytest.raises(DriverError):
        stage.driver.remove_segment(QUARANTINE)


def test_one_port_cannot_be_access_and_trunk(stage):
    ensure(stage, RACK, OTHER)
    both = (AttachSpec(SWP1, OTHER), AttachSpec(SWP1, RACK, "trunk"))
    with pytest.raises(DriverError):
        stage.driver.attach(both)


def test_unknown_settings_are_refused(stage):
    with pytest.raises(ConfigError):
        type(stage.driver).Config.from_dict({"nonsense": 1})


# What only NVUE has.


def test_a_revision_that_lost_a_race_is_made_anew(serve, tmp_path):
    slow = LabStage(serve, tmp_path, apply_seconds=600)
    for one in (RACK, OTHER):
        slow.driver.ensure_segment(one)
        slow.finish()
    first, late = (AttachSpec(SWP1, OTHER),), (AttachSpec(SWP1, RACK),)
    first_ref, late_ref = (slow.login().attach(specs).ref for specs in (first, late))
    slow.finish()
    assert slow.driver.attach(first, first_ref).done
    again = slow.driver.attach(late, late_ref)
    assert not again.done and again.ref != late_ref
    slow.finish()
    assert slow.driver.attach(late, again.ref).done
    assert slow.really(SWP1) == 100


def test_an_applied_change_is_saved_and_asked_for_once(lab):
    ensure(lab, RACK)
    before = len(lab.switch.revisions())
    attach(lab, AttachSpec(SWP1, RACK))
    assert len(lab.switch.revisions()) == before + 1
    startup = lab.switch.tree("startup")["interface"]["swp1"]
    assert startup["bridge"]["domain"]["br_default"]["access"] == 100


def test_a_wrong_password_is_a_lasting_error_without_the_password_in_it(lab):
    driver = lab.login(password="s3cret-but-wrong")
    with pytest.raises(DriverError) as error:
        driver.ports((SWP1,))
    assert error.value.code == "SWITCH_LOGIN" and error.value.permanent
    assert "s3cret" not in str(error.value)
    assert "user name and password" in driver.check()[0]


def test_another_certificate_than_the_pinned_one_is_not_talked_to(lab):
    driver = lab.login(certificates={"leaf-1": "ab" * 32})
    with pytest.raises(DriverError) as error:
        driver.ports((SWP1,))
    assert error.value.permanent and "certificate" in error.value.message


def test_an_unpinned_self_signed_certificate_is_not_trusted(lab):
    with pytest.raises(DriverError):
        lab.login(certificates={}).ports((SWP1,))


def test_a_pin_that_is_no_fingerprint_is_refused(lab):
    with pytest.raises(DriverError) as error:
        lab.login(certificates={"leaf-1": "abc"}, verify=False)
    assert error.value.code == "DRIVER_CONFIG"


def test_a_missing_quarantine_vlan_is_found_by_check(lab):
    assert "quarantine VLAN 3999" in lab.login(quarantine_vlan=3999).check()[0]


def test_nothing_is_written_once_the_budget_is_spent(lab):
    ensure(lab, RACK)
    with call_budget(0), pytest.raises(DriverError) as error:
        lab.driver.attach((AttachSpec(SWP1, RACK),))
    assert error.value.code == "BUDGET_SPENT"
    assert [line for line in lab.acts.lines if line[-1] == 100] == []


def test_a_port_of_a_switch_the_fabric_lacks_is_refused(lab):
    with pytest.raises(DriverError) as error:
        lab.driver.attach((AttachSpec(PortRef("leaf-9", "swp1"), RACK),))
    assert error.value.code == "SWITCH_REFUSED"


def test_passwords_are_secret_settings():
    assert NvueConfig.secret_names() == ("password",)
