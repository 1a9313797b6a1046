"""Power and facts of a server through its BareMetalHost, against the lab."""

from __future__ import annotations

import pytest

from gpucloud.drivers import DriverError
from inventory.drivers.metal3 import Metal3Power
from tests.drivers.kube_lab import KubeLab, until

NAME = "bare-metal-2"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = KubeLab(tmp_path_factory.mktemp("lab"))
    yield made
    made.close()


def power(lab, direct=True, **values):
    known = {"address": lab.doors[f"bmc-{NAME}"], **lab.credentials["bmc"][NAME]}
    config = {"kubeconfig": lab.kubeconfig, "host": NAME, **(known if direct else {}), **values}
    return Metal3Power(Metal3Power.Config.from_dict(config))


def test_power_goes_on_and_off_by_what_the_host_wants(lab):
    driver = power(lab)
    driver.set_power("on")
    assert lab.hosts.get(NAME).online
    until(lambda: driver.power().power == "on")
    driver.set_power("off")
    assert not lab.hosts.get(NAME).online
    seen = until(lambda: (now := driver.power()).power == "off" and now)
    assert seen.via == "redfish"


def test_setting_what_already_is_writes_nothing(lab):
    before = lab.hosts.get(NAME).meta["resourceVersion"]
    power(lab).set_power("off")
    assert lab.hosts.get(NAME).meta["resourceVersion"] == before


def test_without_a_direct_way_metal3s_word_counts_once_it_is_newer_than_our_write(lab):
    driver = power(lab, direct=False)
    driver.set_power("on")
    seen = driver.power()
    assert (seen.power, seen.via) != ("off", "metal3"), "unknown is not off"
    until(lambda: driver.power().power == "on")
    driver.set_power("off")
    until(lambda: driver.power().power == "off")


def test_facts_read_at_the_bmc_have_the_gpus_and_metal3s_own_have_not(lab):
    direct, metal3 = power(lab).inspect(), power(lab, direct=False).inspect()
    assert len(direct.gpus) == 4
    assert direct.uuid == lab.rack[NAME]["uuid"]
    assert direct.extra["lldp"]["eno1"] == {"switch": "leaf-1", "port": "swp3"}
    assert (metal3.gpus, metal3.uuid) == ((), None)
    assert metal3.warnings
    assert {d.serial for d in metal3.drives} == {d.serial for d in direct.drives}
    assert [p.mac for p in metal3.ports] == [p.mac for p in direct.ports]
    assert metal3.serial == direct.serial


def test_boot_order_and_media_are_metal3s(lab):
    driver = power(lab)
    for call in (lambda: driver.boot_from("cd"), lambda: driver.media("http://images/one.iso")):
        with pytest.raises(DriverError) as refused:
            call()
        assert refused.value.code == "BMC_UNSUPPORTED"


def test_what_is_wrong_is_told(lab):
    assert power(lab).check() == []
    (missing,) = power(lab, direct=False, host="nowhere").check()
    assert "nowhere" in missing
    assert power(lab, password="wrong").check()
    path = lab.hosts.path(NAME)
    key = "baremetalhost.metal3.io/paused"
    lab.kube.merge(path, {"metadata": {"annotations": {key: "somebody"}}})
    (paused,) = power(lab).check()
    assert "somebody" in paused
    with pytest.raises(DriverError) as refused:
        power(lab).set_power("on")
    assert refused.value.code == "HOST_PAUSED"
    lab.kube.merge(path, {"metadata": {"annotations": {key: None}}})
