"""What every ProviderDriver promises, asked of the fake and of Metal3 against the lab."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from gpucloud.drivers import ConfigError, DriverError, call_budget
from inventory.drivers.fake import FakeBmc
from inventory.drivers.kube import path_of, secret_text
from inventory.drivers.metal3 import Metal3Power
from provisioning.drivers import ImageSpec, MediaSpec, NodeSpec, ServerRef
from provisioning.drivers.fake import FakeHost, FakeProvider
from provisioning.drivers.metal3 import Metal3
from tests.drivers.kube_lab import NAMESPACE, KubeLab, finish, until

DHCP = {"ip-address": "10.10.0.11/22", "gateway": "10.10.0.1", "dns-servers": "10.10.0.1"}
MEDIA = MediaSpec("https://127.0.0.1:9/a-boot-key/agent.iso")
OTHER_MEDIA = MediaSpec("https://127.0.0.1:9/another-key/agent.iso")


class FakeStage:
    def __init__(self):
        name = str(uuid.uuid4())
        self.driver = FakeProvider(FakeProvider.Config.from_dict({"name": name}))
        self.bmc = FakeBmc(FakeBmc.Config.from_dict({"name": name}))
        self.driver.engine.hosts["one"] = FakeHost(labels={"role": "cpu"})
        self.ref = ServerRef("u-1", "one", "one", "4c4c4544-0001", "52:54:00:10:01:01")
        self.image = ImageSpec("ubuntu", "http://images/ubuntu.qcow2", "a" * 64, "sha256", "qcow2")

    def fail_install(self):
        self.driver.engine.faults["installed"] = "IMAGE_CHECKSUM"

    def mend_install(self):
        self.driver.engine.faults.clear()

    def break_connection(self):
        self.driver.engine.faults["check"] = "KUBE_UNREACHABLE"

    def clear(self):
        pass


class Metal3Stage:
    name = "bare-metal-1"

    def __init__(self, lab):
        self.lab, self.hosts = lab, lab.hosts
        self.driver = self.login()
        values = {
            "kubeconfig": lab.kubeconfig,
            "host": self.name,
            "address": lab.doors[f"bmc-{self.name}"],
            **lab.credentials["bmc"][self.name],
        }
        self.bmc = Metal3Power(Metal3Power.Config.from_dict(values))
        known = lab.rack[self.name]
        mac = known["nics"][0]["mac"]
        engine_id = f"{NAMESPACE}/{self.name}"
        self.ref = ServerRef("u-1", self.name, engine_id, known["uuid"], mac)
        self.image = ImageSpec("ubuntu", lab.image, f"{lab.image}.sha256", "sha256", "qcow2")
        self.patch({"automatedCleaningMode": "disabled"})

    def login(self, **values):
        config = {"kubeconfig": self.lab.kubeconfig, "namespace": NAMESPACE, **values}
        return Metal3(Metal3.Config.from_dict(config))

    @property
    def host(self):
        return self.hosts.get(self.name)

    def patch(self, spec=None, notes=None):
        body = {"metadata": {"annotations": notes or {}}, "spec": spec or {}}
        self.lab.kube.merge(self.hosts.path(self.name), body)

    def fail_install(self):
        self.image = replace(self.image, checksum="a" * 64)

    def mend_install(self):
        self.image = replace(self.image, checksum=f"{self.lab.image}.sha256")

    def break_connection(self):
        self.driver = self.login(kubeconfig=self.lab.kubeconfig.replace("token: ", "token: not"))

    def clear(self):
        """The host as it was found: free, blank, off."""
        self.lab.faults(self.name)
        dirty = ("image", "userData", "networkData", "metaData", "consumerRef")
        notes = {key: None for key in self.host.annotations if not key.endswith(".com/asset")}
        kept = {f"metal3.vcluster.com/{key}": value for key, value in DHCP.items()}
        self.patch({**dict.fromkeys(dirty), "online": False}, {**notes, **kept})
        until(lambda: self.host.state == "available" and not self.host.powered, 30)
        until(lambda: self.bmc.power().power == "off")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = KubeLab(tmp_path_factory.mktemp("lab"))
    yield made
    made.close()


@pytest.fixture
def metal3(lab):
    made = Metal3Stage(lab)
    yield made
    made.clear()


@pytest.fixture(params=["fake", "metal3"])
def stage(request):
    if request.param == "metal3":
        return request.getfixturevalue("metal3")
    return FakeStage()


def spec_of(stage, verb="claim", **values):
    """One claim's NodeSpec; its uid is the stage's unless given."""
    fields = {
        "claim_uid": getattr(stage, "claim_uid", "6a2f6a52-0000-4000-8000-000000000001"),
        "claim_name": "one-gpu-1",
        "tenant": "default",
        "verb": verb,
        "server": stage.ref,
        "bmc": stage.bmc,
        "image": stage.image,
        "user_data": "#cloud-config\nhostname: one\n",
        "network_data": {"links": [], "networks": []},
        "meta_data": {"instance-id": "claim-1"},
        "dhcp": DHCP,
        **values,
    }
    return NodeSpec(**fields)


def prepare(stage):
    return finish(lambda: stage.driver.ensure(spec_of(stage), "prepared"))


def install(stage):
    prepare(stage)
    return finish(lambda: stage.driver.ensure(spec_of(stage), "installed"))


def stop(stage, verb="claim"):
    def look():
        return stage.driver.remove(spec_of(stage, verb, power=stage.bmc.power()), "stopped")

    return finish(look)


def test_every_verb_has_its_steps(stage):
    assert stage.driver.steps["claim"][0] == "select"
    assert stage.driver.steps["claim"][-1] == "verify"
    assert stage.driver.steps["release"][-2:] == ("wipe", "check")
    assert stage.driver.physical


def test_unknown_settings_are_refused(stage):
    with pytest.raises(ConfigError) as refused:
        type(stage.driver).Config.from_dict({"kubeconfig": "x", "colour": "red"})
    assert "colour" in refused.value.errors


def test_a_connection_that_works_has_no_problems_and_a_broken_one_is_told(stage):
    assert stage.driver.check() == []
    stage.break_connection()
    assert len(stage.driver.check()) == 1


def test_stock_is_what_the_selector_matches_and_a_claimed_one_is_refused(stage):
    (item,) = stage.driver.stock({"role": "cpu"})
    assert (item.engine_id, item.state, item.refused) == (stage.ref.engine_id, "available", "")
    assert stage.driver.stock({"role": "nowhere"}) == []
    prepare(stage)
    (item,) = stage.driver.stock({"role": "cpu"})
    assert item.refused_code == "HOST_BUSY"
    assert item.refused


def test_preparing_claims_the_server_and_leaves_it_off(stage):
    prepare(stage)
    assert stage.bmc.power().power == "off"
    assert stage.driver.observe(stage.ref).claimed_by == spec_of(stage).claim_uid
    assert prepare(stage).done


def test_a_server_of_another_claim_is_refused(stage):
    prepare(stage)
    other = spec_of(stage, claim_uid="6a2f6a52-0000-4000-8000-000000000002")
    for call in (
        lambda: stage.driver.ensure(other, "installed"),
        lambda: stage.driver.wipe(replace(other, media=MEDIA)),
        lambda: stage.driver.remove(other, "stopped"),
    ):
        with pytest.raises(DriverError) as refused:
            call()
        assert (refused.value.code, refused.value.permanent) == ("HOST_BUSY", True)
    assert stage.driver.remove(other, "released").done


def test_a_failed_install_names_its_reason_and_a_retry_goes_on(stage):
    stage.fail_install()
    with pytest.raises(DriverError) as failed:
        install(stage)
    assert (failed.value.code, failed.value.permanent) == ("IMAGE_CHECKSUM", True)
    stage.mend_install()
    finish(lambda: stage.driver.ensure(spec_of(stage), "installed"))


def test_a_server_goes_all_the_way_and_comes_back_blank(stage):
    install(stage)
    assert stage.bmc.power().power == "on"
    stop(stage)
    assert stage.bmc.power().power == "off"
    finish(lambda: stage.driver.ensure(spec_of(stage), "started"))
    assert stage.bmc.power().power == "on"

    stop(stage, "release")
    assert stage.bmc.power().power == "off"
    release = spec_of(stage, "release", media=MEDIA)
    finish(lambda: stage.driver.remove(release, "released"))
    assert stage.bmc.power().power == "off"
    finish(lambda: stage.driver.wipe(release))
    assert stage.bmc.power().power == "on"
    stop(stage, "release")
    assert stage.bmc.power().power == "off"
    finish(lambda: stage.driver.remove(spec_of(stage, "release"), "released"))
    seen = stage.driver.observe(stage.ref)
    assert (seen.state, seen.claimed_by) == ("available", "")
    (item,) = stage.driver.stock({"role": "cpu"})
    assert item.refused == ""


def test_a_claim_that_was_never_prepared_also_leaves_through_a_wipe(stage):
    stop(stage, "release")
    release = spec_of(stage, "release", media=MEDIA)
    finish(lambda: stage.driver.remove(release, "released"))
    finish(lambda: stage.driver.wipe(release))
    stop(stage, "release")
    finish(lambda: stage.driver.remove(spec_of(stage, "release"), "released"))
    assert stage.driver.observe(stage.ref).claimed_by == ""


# Metal3 alone.


def test_only_our_own_keys_of_the_host_are_ever_written(metal3):
    foreign = {"inventory.example.com/asset": "BM01 / rack A", "gitops.example.com/commit": "7ü"}
    metal3.patch(notes=foreign)
    before = metal3.host
    install(metal3)
    metal3.patch(notes={"metal3.vcluster.com/gateway": None})
    stop(metal3)
    seen = metal3.host
    assert foreign.items() <= seen.annotations.items()
    assert seen.meta["labels"] == before.meta["labels"]
    assert seen.spec["bmc"] == before.spec["bmc"]
    assert seen.annotations["metal3.vcluster.com/gateway"] == "10.10.0.1"


def test_data_is_in_secrets_named_from_the_claim_and_goes_with_it(metal3):
    prepare(metal3)
    uid = spec_of(metal3).claim_uid
    path = path_of("v1", "secrets", NAMESPACE, f"gpucloud-{uid}-userdata")
    secret = metal3.lab.kube.get(path)
    assert secret_text(secret, "userData").startswith("#cloud-config")
    assert metal3.host.spec["userData"]["name"] == secret["metadata"]["name"]
    finish(lambda: metal3.driver.remove(spec_of(metal3, "release"), "released"))
    assert metal3.lab.kube.get(path) is None
    assert metal3.host.consumer == {}


def test_the_hold_comes_after_provisioned_and_keeps_the_server_off(metal3):
    install(metal3)
    stop(metal3)
    assert metal3.host.annotations["reboot.metal3.io/gpucloud"] == '{"mode":"hard"}'
    assert metal3.host.online
    booted = metal3.lab.acts(f"machine:{metal3.name}", "boot")
    assert booted[-1]["after"] == "Pxe"


def test_a_system_that_had_begun_is_told_every_time_and_stays_off(metal3):
    install(metal3)
    seen = until(
        lambda: (now := metal3.bmc.power()).boot_progress in ("OSBootStarted", "OSRunning") and now
    )
    for power in (seen, None):
        with pytest.raises(DriverError) as begun:
            finish(
                lambda power=power: metal3.driver.remove(spec_of(metal3, power=power), "stopped")
            )
        assert begun.value.code == "OS_BOOTED_IN_PROVISIONING"
        until(lambda: metal3.bmc.power().power == "off")
    stop(metal3, "release")


def test_an_unreachable_image_stops_metal3_from_trying_again(metal3):
    metal3.image = replace(metal3.image, url=f"{metal3.lab.image}.nowhere")
    with pytest.raises(DriverError) as failed:
        install(metal3)
    assert failed.value.code == "IMAGE_UNREACHABLE"
    assert (metal3.host.image_url, metal3.host.online) == ("", False)


def test_a_host_that_git_owns_is_not_claimable(metal3):
    path = metal3.hosts.path(metal3.name)
    applied = {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": metal3.name},
        "spec": {"online": False},
    }
    kube = metal3.lab.kube
    headers = {
        "Content-Type": "application/apply-patch+yaml",
        "Authorization": kube.api.configuration.api_key["authorization"],
    }
    url = f"{kube.host}{path}?fieldManager=argocd&force=true"
    answer = kube.api.rest_client.pool_manager.request("PATCH", url, json=applied, headers=headers)
    assert answer.status == 200
    (item,) = metal3.driver.stock({"role": "cpu"})
    assert item.refused_code == "GIT_OWNS_POWER"
    assert "argocd" in item.refused
    with pytest.raises(DriverError) as refused:
        prepare_once(metal3)
    assert refused.value.code == "GIT_OWNS_POWER"
    kube.merge(path, {"metadata": {"managedFields": [{}]}})


def prepare_once(stage):
    return stage.driver.ensure(spec_of(stage), "prepared")


def test_a_paused_host_is_left_alone_and_told(metal3):
    metal3.patch(notes={"baremetalhost.metal3.io/paused": "somebody"})
    with pytest.raises(DriverError) as refused:
        prepare_once(metal3)
    assert refused.value.code == "HOST_PAUSED"
    assert metal3.driver.observe(metal3.ref).error_code == "HOST_PAUSED"
    metal3.patch(notes={"baremetalhost.metal3.io/paused": None})


def test_a_wipe_with_a_new_key_boots_the_new_media(metal3):
    prepare(metal3)
    finish(lambda: metal3.driver.wipe(spec_of(metal3, "release", media=MEDIA)))
    finish(lambda: metal3.driver.wipe(spec_of(metal3, "release", media=OTHER_MEDIA)))
    assert metal3.host.written_url == OTHER_MEDIA.url
    assert metal3.host.spec["image"] == {"url": OTHER_MEDIA.url, "format": "live-iso"}


def test_media_that_the_bmc_ignores_are_told(metal3):
    prepare(metal3)
    metal3.lab.faults(metal3.name, ignore_media=True)
    with pytest.raises(DriverError) as failed:
        finish(lambda: metal3.driver.wipe(spec_of(metal3, "release", media=MEDIA)))
    assert failed.value.code == "MEDIA_IGNORED"


def test_a_spent_budget_sends_no_write(metal3):
    with call_budget(0), pytest.raises(DriverError) as spent:
        prepare_once(metal3)
    assert spent.value.code == "BUDGET_SPENT"
    assert metal3.host.consumer == {}


def test_a_missing_host_is_told(metal3):
    ref = replace(metal3.ref, engine_id=f"{NAMESPACE}/nowhere")
    with pytest.raises(DriverError) as missing:
        metal3.driver.ensure(spec_of(metal3, server=ref), "prepared")
    assert missing.value.code == "HOST_MISSING"
    assert not metal3.driver.observe(ref).exists
