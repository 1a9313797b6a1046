"""The lab's Metal3 as a whole: real BMC calls, real ramdisk reports, errors, restarts."""

from __future__ import annotations

import os
import signal

import pytest

from inventory.drivers.kube import path_of, secret_data
from tests.drivers.kube_lab import NAMESPACE, KubeLab, until

ONE, TWO = "bare-metal-1", "bare-metal-2"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = KubeLab(tmp_path_factory.mktemp("lab"))
    yield made
    made.close()


def patch(lab, name, spec=None, notes=None):
    body = {"metadata": {"annotations": notes or {}}, "spec": spec or {}}
    lab.kube.merge(lab.hosts.path(name), body)


def set_password(lab, name, password):
    path = path_of("v1", "secrets", NAMESPACE, f"{name}-bmc")
    lab.kube.merge(path, {"data": secret_data({"password": password})})


def image(lab):
    url = lab.image
    return {"url": url, "checksum": f"{url}.sha256", "checksumType": "sha256", "format": "qcow2"}


def test_hosts_register_and_inspect_for_real(lab):
    host = lab.hosts.get(ONE)
    serials = {disk["serialNumber"] for disk in host.status["hardware"]["storage"]}
    assert serials == {drive["serial"] for drive in lab.rack[ONE]["drives"]}
    path = path_of("metal3.io/v1alpha1", "hardwaredata", NAMESPACE, ONE)
    assert lab.kube.get(path)["spec"]["hardware"] == host.status["hardware"]
    assert {"register", "inspect"} <= set(host.status["operationHistory"])
    phases = [act["after"] for act in lab.acts(f"machine:{ONE}", "phase")]
    assert phases == ["post", "loading", "ramdisk", "off"]


def test_wrong_credentials_are_a_registration_error_until_the_secret_is_right(lab):
    set_password(lab, ONE, "wrong")
    host = until(lambda: (now := lab.hosts.get(ONE)).error_type and now)
    assert host.error_type == "registration error"
    assert host.state == "available"
    set_password(lab, ONE, lab.credentials["bmc"][ONE]["password"])
    until(lambda: not lab.hosts.get(ONE).error_type)


def test_a_silent_bmc_is_a_power_management_error_until_it_answers(lab):
    lab.faults(ONE, no_reply=True)
    host = until(lambda: (now := lab.hosts.get(ONE)).error_type and now)
    assert host.error_type == "power management error"
    lab.faults(ONE)
    until(lambda: not lab.hosts.get(ONE).error_type, 30)


def test_power_is_put_back_when_somebody_presses_the_button(lab):
    lab.ask("POST", f"/servers/{ONE}/power", {"state": "on"})
    until(lambda: lab.ask("GET", f"/servers/{ONE}")["power"] == "on")
    until(lambda: lab.ask("GET", f"/servers/{ONE}")["power"] == "off")


def test_an_operator_killed_in_mid_install_goes_on_where_it_was(lab):
    patch(lab, TWO, {"online": True, "image": image(lab)})
    until(lambda: lab.acts(f"machine:{TWO}", "boot")[1:])
    os.kill(lab._kube.pid, signal.SIGKILL)
    lab._kube.wait()
    lab._kube = lab._run("kube")
    until(lambda: _state(lab, TWO) == "provisioned", 40)
    written = lab.acts(f"machine:{TWO}", "image")
    assert len(written) == 1
    assert lab.hosts.get(TWO).written_url == lab.image


def _state(lab, name):
    try:
        return lab.hosts.get(name).state
    except Exception:  # noqa: BLE001 - the API is just coming back
        return ""


def test_a_deleted_host_is_cleaned_and_off_before_it_goes(lab):
    until(lambda: _state(lab, TWO) == "provisioned")
    lab.kube.delete(lab.hosts.path(TWO))
    assert lab.hosts.find(TWO) is not None, "the finalizer holds it"
    until(lambda: lab.hosts.find(TWO) is None, 40)
    machine = lab.ask("GET", f"/servers/{TWO}")
    assert machine["power"] == "off"
    for plural, name in (("secrets", f"{TWO}-bmc"),):
        assert lab.kube.get(path_of("v1", plural, NAMESPACE, name)) is None
    assert lab.kube.get(path_of("metal3.io/v1alpha1", "hardwaredata", NAMESPACE, TWO)) is None


def test_events_tell_what_happened(lab):
    path = path_of("v1", "events", NAMESPACE)
    reasons = {event["reason"] for event in lab.kube.list(path)}
    assert {"Registered", "BMCAccessValidated", "InspectionComplete"} <= reasons
    assert {"BMCCredentialError", "PowerManagementError", "ProvisioningComplete"} <= reasons
