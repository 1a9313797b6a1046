"""What every ControlPlaneDriver promises, asked of the fake and of the platform in the lab."""

from __future__ import annotations

import re
import ssl
import urllib.error
import urllib.request
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from gpucloud.drivers import ConfigError, DriverError
from inventory.drivers.kube import Kube, path_of
from tenants.drivers import ClusterSpec, JoinSpec, NodeSeen
from tenants.drivers.fake import FakeControlPlane
from tenants.drivers.vcluster_platform import VclusterPlatform
from tests.drivers.kube_lab import KubeLab, finish, until

VALUES = {
    "controlPlane": {
        "endpoint": "192.168.100.2:8443",
        "statefulSet": {
            "pods": {"annotations": {"k8s.v1.cni.cncf.io/networks": "p-default/br0-vcluster-one"}}
        },
    },
    "privateNodes": {"enabled": True, "autoNodes": [{"provider": "metal3"}]},
}
SEGMENT = {
    "name": "rack",
    "vlan": 100,
    "cidr": "192.168.100.0/24",
    "gateway": "192.168.100.1",
    "host_bridge": "br0",
}
JOIN = JoinSpec("claim-1", "bare-metal-1", {"workload": "gpu", "run.ai/pool": "default"})


class FakeStage:
    def __init__(self):
        name = str(uuid.uuid4())
        self.driver = FakeControlPlane(FakeControlPlane.Config.from_dict({"name": name}))

    def break_connection(self):
        self.driver.platform.faults["check"] = "KUBE_UNREACHABLE"

    def add_node(self, spec, access, name, system_uuid):
        node = NodeSeen(name, system_uuid, True, datetime.now(UTC), {"workload": "gpu"})
        self.driver.platform.clusters[spec.uid].nodes[name] = node

    def has_token(self, spec, access, ident):
        return bool(self.driver.platform.clusters[spec.uid].tokens)

    def break_values(self, spec):
        self.driver.platform.faults["ensure"] = "CONTROL_PLANE_FAILED"
        return spec


class PlatformStage:
    def __init__(self, lab):
        self.lab = lab
        self.driver = self.login()

    def login(self, **values):
        config = {"kubeconfig": self.lab.kubeconfig, **values}
        return VclusterPlatform(VclusterPlatform.Config.from_dict(config))

    def break_connection(self):
        self.driver = self.login(kubeconfig=self.lab.kubeconfig.replace("token: ", "token: not"))

    def add_node(self, spec, access, name, system_uuid):
        kube = Kube(access.kubeconfig)
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"nodeInfo": {"systemUUID": system_uuid.upper()}, "conditions": [ready]}
        kube.create(
            path_of("v1", "nodes"), {"metadata": {"name": name, "labels": {"workload": "gpu"}}}
        )
        kube.merge(path_of("v1", "nodes", name=name, sub="status"), {"status": status})

    def has_token(self, spec, access, ident):
        path = path_of("v1", "secrets", "kube-system", f"bootstrap-token-{ident}")
        return Kube(access.kubeconfig).get(path) is not None

    def break_values(self, spec):
        return replace(spec, chart_version="the newest")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    made = KubeLab(tmp_path_factory.mktemp("lab"))
    yield made
    made.close()


@pytest.fixture(params=["fake", "platform"])
def stage(request):
    return (
        PlatformStage(request.getfixturevalue("lab"))
        if request.param == "platform"
        else FakeStage()
    )


@pytest.fixture
def platform(lab):
    return PlatformStage(lab)


@pytest.fixture
def spec(stage):
    """A cluster that is gone after the test."""
    name = f"c{uuid.uuid4().hex[:6]}"
    made = ClusterSpec(
        uid=str(uuid.uuid4()),
        name=name,
        tenant="default",
        namespace="p-default",
        chart_version="0.37.3",
        values={**VALUES, "controlPlane": {"endpoint": VALUES["controlPlane"]["endpoint"]}},
        segment=SEGMENT,
        node_endpoint="192.168.100.2:8443",
        owner="admin",
    )
    yield made
    getattr(stage.driver, "platform", FakeStage().driver.platform).faults.clear()
    finish(lambda: stage.driver.remove(made))


def ready(stage, spec):
    finish(lambda: stage.driver.ensure_network(spec))
    finish(lambda: stage.driver.ensure(spec))
    return stage.driver.access(spec)


def test_unknown_settings_are_refused(stage):
    with pytest.raises(ConfigError):
        type(stage.driver).Config.from_dict({"kubeconfig": "x", "colour": "red"})


def test_a_connection_that_works_has_no_problems_and_a_broken_one_is_told(stage):
    assert stage.driver.check() == []
    stage.break_connection()
    assert len(stage.driver.check()) == 1


def test_a_control_plane_goes_through_its_phases_in_order(stage, spec):
    finish(lambda: stage.driver.ensure_network(spec))
    seen = []

    def look():
        progress = stage.driver.ensure(spec)
        seen.append(progress.evidence["phase"])
        return progress

    last = finish(look)
    assert last.evidence["phase"] == "ready"
    order = [stage.driver.phases.index(phase) for phase in seen]
    assert order == sorted(order)
    assert seen[0] == "scheduling"
    assert {"type", "status", "reason", "at"} <= last.evidence["conditions"][0].keys()
    assert stage.driver.ensure(spec).done


def test_there_is_no_access_before_there_is_an_api(stage, spec):
    with pytest.raises(DriverError) as early:
        stage.driver.access(spec)
    assert (early.value.code, early.value.permanent) == ("CLUSTER_NOT_READY", False)


def test_access_names_both_endpoints_and_the_authority(stage, spec):
    access = ready(stage, spec)
    assert access.client_endpoint.startswith("https://")
    assert access.node_endpoint == spec.node_endpoint
    assert re.fullmatch("sha256:[0-9a-f]{64}", access.ca_hash)
    assert "kind: Config" in access.kubeconfig


def test_a_claim_gets_one_token_that_is_extended_and_revoked(stage, spec):
    access = ready(stage, spec)
    first = stage.driver.join_data(spec, JOIN, access)
    again = stage.driver.join_data(spec, JOIN, access)
    other = stage.driver.join_data(spec, replace(JOIN, claim_uid="claim-2"), access)
    assert (first.token_id, first.user_data) == (again.token_id, again.user_data)
    assert other.token_id != first.token_id
    assert first.expires > datetime.now(UTC) + timedelta(minutes=50)
    assert stage.has_token(spec, access, first.token_id)
    stage.driver.extend(spec, "claim-1", access)
    for claim in ("claim-1", "claim-1", "claim-2"):
        stage.driver.revoke(spec, claim, access)
    assert not stage.has_token(spec, access, first.token_id)
    with pytest.raises(DriverError):
        stage.driver.extend(spec, "claim-1", access)


def test_user_data_names_the_node_its_labels_and_the_node_endpoint(stage, spec):
    access = ready(stage, spec)
    taint = {"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"}
    join = replace(JOIN, taints=(taint,), ssh_keys=("ssh-ed25519 AAAA me",))
    data = stage.driver.join_data(spec, join, access)
    assert data.user_data.startswith("#cloud-config\n")
    config = yaml.safe_load(data.user_data)
    assert config["hostname"] == "bare-metal-1"
    assert config["ssh_authorized_keys"] == ["ssh-ed25519 AAAA me"]
    (kubelet,) = config["write_files"]
    assert kubelet["path"] == "/etc/default/kubelet"
    assert "--node-labels=run.ai/pool=default,workload=gpu" in kubelet["content"]
    assert "--register-with-taints=nvidia.com/gpu=:NoSchedule" in kubelet["content"]
    pattern = rf"https://{spec.node_endpoint}/node/join\?token={data.token_id}\.[a-z0-9]{{16}}"
    assert re.search(pattern, config["runcmd"][0])


def test_a_node_is_known_by_its_system_uuid_and_drained_away(stage, spec):
    access = ready(stage, spec)
    assert stage.driver.nodes(spec, access) == []
    stage.add_node(spec, access, "bare-metal-1", "4c4c4544-0042-4d10-8031-b1c04f4d0001")
    (node,) = stage.driver.nodes(spec, access)
    assert node.system_uuid == "4c4c4544-0042-4d10-8031-b1c04f4d0001"
    assert node.ready
    assert node.labels["workload"] == "gpu"
    assert node.created is not None
    finish(lambda: stage.driver.drain(spec, "bare-metal-1", access))
    assert stage.driver.nodes(spec, access) == []
    assert stage.driver.drain(spec, "bare-metal-1", access).done


def test_what_the_platform_gives_up_on_is_a_permanent_failure(stage, spec):
    broken = stage.break_values(spec)
    with pytest.raises(DriverError) as failed:
        finish(lambda: stage.driver.ensure(broken))
    assert (failed.value.code, failed.value.permanent) == ("CONTROL_PLANE_FAILED", True)


def test_a_removed_cluster_is_gone_and_removing_again_is_done(stage, spec):
    access = ready(stage, spec)
    finish(lambda: stage.driver.remove(spec))
    assert stage.driver.remove(spec).done
    with pytest.raises(DriverError):
        stage.driver.access(spec)
    if isinstance(stage, PlatformStage):
        with pytest.raises(DriverError) as silent:
            stage.driver.nodes(spec, access)
        assert silent.value.code == "TENANT_API_UNREACHABLE"


# The platform alone.


@pytest.fixture
def on_platform(platform):
    """Specs of clusters that are removed after the test."""
    made = []

    def make(**values):
        fields = {
            "uid": str(uuid.uuid4()),
            "name": f"c{uuid.uuid4().hex[:6]}",
            "tenant": "default",
            "namespace": "p-default",
            "chart_version": "0.37.3",
            "values": VALUES,
            "segment": SEGMENT,
            "node_endpoint": "192.168.100.2:8443",
            **values,
        }
        made.append(ClusterSpec(**fields))
        return made[-1]

    yield make
    for spec in made:
        finish(lambda spec=spec: platform.driver.remove(spec))


def instance(platform, spec):
    path = path_of("management.loft.sh/v1", "virtualclusterinstances", "p-default", spec.name)
    return platform.lab.kube.get(path)


def test_auto_nodes_never_reach_the_platform(platform, on_platform):
    spec = on_platform()
    ready(platform, spec)
    release = instance(platform, spec)["spec"]["template"]["helmRelease"]
    values = yaml.safe_load(release["values"])
    assert values["privateNodes"] == {"enabled": True}
    assert values["controlPlane"] == VALUES["controlPlane"]
    assert spec.values["privateNodes"]["autoNodes"], "the caller's values are not changed"


@pytest.mark.parametrize(
    ("bridge", "untagged", "config"),
    [
        ("", "", {"bridge": "br-tenant", "vlan": 100}),
        ("br0", "", {"bridge": "br0", "vlan": 100}),
        ("br0", "br1=200, br0=100", {"bridge": "br0"}),
    ],
)
def test_the_attachment_leads_to_the_segments_vlan(platform, on_platform, bridge, untagged, config):
    spec = on_platform(values={}, segment={**SEGMENT, "host_bridge": bridge})
    attached = finish(lambda: platform.login(untagged=untagged).ensure_network(spec))
    assert config.items() <= attached.evidence["config"].items()
    assert ("vlan" in attached.evidence["config"]) == ("vlan" in config)


def test_the_node_endpoint_is_in_the_segments_vlan(platform, on_platform):
    spec = on_platform(values={}, segment={**SEGMENT, "vlan": 105})
    ready(platform, spec)
    url = f"{platform.lab.doors['ironic']}/endpoints"
    told = yaml.safe_load(urllib.request.urlopen(url, timeout=5).read())
    found = [one for one in told if one["cluster"].endswith(spec.name)]
    assert [(one["vlan"], one["vip"]) for one in found] == [(105, spec.node_endpoint)]


def test_an_instance_of_somebody_else_is_not_taken_over(platform, on_platform):
    spec = on_platform()
    ready(platform, spec)
    other = replace(spec, uid=str(uuid.uuid4()))
    with pytest.raises(DriverError) as refused:
        platform.driver.ensure(other)
    assert refused.value.permanent
    assert platform.driver.remove(other).done
    assert instance(platform, spec)["metadata"].get("deletionTimestamp") is None


def test_changed_values_roll_the_control_plane(platform, on_platform):
    spec = on_platform()
    ready(platform, spec)
    changed = replace(spec, values={**VALUES, "telemetry": {"enabled": False}})
    before = instance(platform, spec)["status"]["deployHash"]
    assert not platform.driver.ensure(changed).done
    until(lambda: instance(platform, spec)["status"]["deployHash"] != before)
    finish(lambda: platform.driver.ensure(changed))
    values = instance(platform, spec)["spec"]["template"]["helmRelease"]["values"]
    assert yaml.safe_load(values)["telemetry"] == {"enabled": False}


def test_the_kubeconfig_works_and_a_wrong_token_does_not(platform, on_platform):
    spec = on_platform()
    access = ready(platform, spec)
    document = yaml.safe_load(access.kubeconfig)
    token = document["users"][0]["user"]["token"]
    trust = ssl.create_default_context(cafile=str(platform.lab.folder / "lab/kube/ca.crt"))

    def ask(bearer):
        headers = {"Authorization": f"Bearer {bearer}"}
        request = urllib.request.Request(f"{access.client_endpoint}/api/v1/nodes", headers=headers)
        return urllib.request.urlopen(request, timeout=5, context=trust).status

    assert ask(token) == 200
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask("nobody")
    assert refused.value.code == 401


def test_a_client_address_of_our_own_replaces_the_platforms(lab, platform, on_platform):
    spec = on_platform()
    ready(platform, spec)
    ours = platform.login(client_endpoint="https://{name}.{tenant}.example.com")
    access = ours.access(spec)
    assert access.client_endpoint == f"https://{spec.name}.default.example.com"
    assert access.client_endpoint in access.kubeconfig
