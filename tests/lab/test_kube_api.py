"""The lab's Kubernetes API as real clients meet it: the official Python client and kubectl."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

ROOT = Path(__file__).parents[2]
MERGE = "application/merge-patch+json"
# The process without Metal3's and the platform's controllers: here everybody is a test.
ALONE = """
import asyncio
from gpucloud.lab.kube import __main__ as lab, keeper
lab.CONTROLLERS = (keeper.run,)
asyncio.run(lab.main())
"""
BMH = ("metal3.io", "v1alpha1", "default", "baremetalhosts")
RACK = {
    "servers": [],
    "switches": [],
    "images": [],
    "provisioning": {"cidr": "10.10.0.0/22", "gateway": "10.10.0.1", "dns": []},
    "kubernetes": {"host_version": "v1.36.5", "tenant_version": "v1.36.0"},
}


class Lab:
    """One lab-kube process over one data folder."""

    def __init__(self, data):
        self.data = data
        self.kubeconfig = data / "lab" / "kube" / "kubeconfig"
        rack = data / "rack.json"
        rack.write_text(json.dumps(RACK))
        self._environment = os.environ | {
            "GPUCLOUD_DATA": str(data), "LAB_RACK": str(rack), "LAB_SPEED": "200",
        }  # fmt: skip
        self._run("-m", "gpucloud.lab.setup").wait(20)
        self.start()

    def _run(self, *words):
        with (self.data / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *words], cwd=ROOT, env=self._environment, stderr=log
            )

    def start(self):
        self.process = self._run("-c", ALONE)
        deadline = time.monotonic() + 20
        while self.kubectl("get", "--raw", "/readyz", check=False).returncode:
            assert self.process.poll() is None, (self.data / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(10)

    def command(self, *words):
        return ["timeout", "30", "kubectl", "--kubeconfig", str(self.kubeconfig), *words]

    def kubectl(self, *words, given=None, check=True):
        done = subprocess.run(
            self.command(*words), input=given, capture_output=True, text=True, timeout=30,
            env=os.environ | {"HOME": str(self.data)},
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stderr
        return done

    def api(self):
        return config.new_client_from_config(str(self.kubeconfig))

    def acts(self):
        lines = (self.data / "lab" / "acts" / "kube.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("lab"))
    yield lab
    lab.stop()


@pytest.fixture
def hosts(lab):
    api = client.CustomObjectsApi(lab.api())
    yield api
    for found in api.list_namespaced_custom_object(*BMH)["items"]:
        name = found["metadata"]["name"]
        release = {"metadata": {"finalizers": None}}
        api.patch_namespaced_custom_object(*BMH, name, release, _content_type=MERGE)
        try:
            api.delete_namespaced_custom_object(*BMH, name)
        except ApiException as error:
            assert error.status == 404


JSON = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


def host(name="h1", **meta):
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {"name": name, **meta},
        "spec": {"online": False},
    }


def create(hosts, name="h1", **meta):
    return hosts.create_namespaced_custom_object(*BMH, host(name, **meta))


def refused(status, reason, call, *args, **options):
    with pytest.raises(ApiException) as caught:
        call(*args, **options)
    body = json.loads(caught.value.body)
    assert (caught.value.status, body["reason"]) == (status, reason)
    return body


# The official Python client


def test_client_patches_of_every_kind(hosts):
    create(hosts, annotations={"foreign": "kept"})
    patch = hosts.patch_namespaced_custom_object
    merged = patch(*BMH, "h1", {"spec": {"description": "a"}}, _content_type=MERGE)
    assert merged["metadata"]["annotations"]["foreign"] == "kept"
    tested = [
        {"op": "test", "path": "/spec/description", "value": "other"},
        {"op": "remove", "path": "/spec/description"},
    ]
    refused(422, "Invalid", patch, *BMH, "h1", tested, _content_type=JSON)
    tested[0]["value"] = "a"
    assert "description" not in patch(*BMH, "h1", tested, _content_type=JSON)["spec"]
    intent = host() | {"spec": {"online": True}}
    options = {"_content_type": APPLY, "field_manager": "gitops"}
    body = refused(409, "Conflict", patch, *BMH, "h1", intent, **options)
    assert body["details"]["causes"][0]["field"] == ".spec.online"
    applied = patch(*BMH, "h1", intent, **options, force=True)
    entries = applied["metadata"]["managedFields"]
    assert [e["manager"] for e in entries if e["operation"] == "Apply"] == ["gitops"]


def test_client_claim_race_is_lost_with_409(hosts):
    version = create(hosts)["metadata"]["resourceVersion"]
    claim = {"metadata": {"resourceVersion": version}, "spec": {"consumerRef": {"name": "one"}}}
    patch = hosts.patch_namespaced_custom_object
    patch(*BMH, "h1", claim, _content_type=MERGE)
    refused(409, "Conflict", patch, *BMH, "h1", claim, _content_type=MERGE)


def test_client_replace_and_status_door(hosts):
    found = create(hosts)
    found["spec"]["online"] = True
    hosts.replace_namespaced_custom_object(*BMH, "h1", found)
    refused(409, "Conflict", hosts.replace_namespaced_custom_object, *BMH, "h1", found)
    status = {
        "errorCount": 0, "errorMessage": "", "operationalStatus": "OK", "poweredOn": False,
        "provisioning": {"ID": "", "state": "available"}, "provisioningFailCount": 0,
    }  # fmt: skip
    patch = hosts.patch_namespaced_custom_object_status
    seen = patch(*BMH, "h1", {"status": status}, _content_type=MERGE)
    assert seen["status"]["provisioning"]["state"] == "available"
    assert seen["metadata"]["generation"] == 2
    wrong = {"status": {"errorType": "detach error"}}
    refused(422, "Invalid", patch, *BMH, "h1", wrong, _content_type=MERGE)


def test_client_watch_resumes_where_a_list_ended(hosts):
    create(hosts, "a")
    version = hosts.list_namespaced_custom_object(*BMH)["metadata"]["resourceVersion"]
    create(hosts, "b", labels={"role": "gpu"})
    hosts.delete_namespaced_custom_object(*BMH, "a")
    seen = [
        (event["type"], event["object"]["metadata"]["name"])
        for event in watch.Watch().stream(
            hosts.list_namespaced_custom_object, *BMH, resource_version=version, timeout_seconds=1
        )
    ]
    assert seen == [("ADDED", "b"), ("DELETED", "a")]


def test_client_watch_of_a_forgotten_past_is_410(lab):
    core = client.CoreV1Api(lab.api())
    core.create_namespaced_config_map("default", {"metadata": {"name": "busy"}})
    for number in range(5):
        core.patch_namespaced_config_map("busy", "default", {"data": {"n": str(number)}})
    stream = watch.Watch().stream(
        core.list_namespaced_config_map, "default", resource_version="99999999", timeout_seconds=5
    )
    with pytest.raises(ApiException) as caught:
        list(stream)
    assert caught.value.status == 410


def test_client_finalizer_holds_a_deleted_host(hosts):
    create(hosts, finalizers=["test.example.com/hold"])
    left = hosts.delete_namespaced_custom_object(*BMH, "h1")
    assert left["metadata"]["deletionTimestamp"]
    release = {"metadata": {"finalizers": None}}
    hosts.patch_namespaced_custom_object(*BMH, "h1", release, _content_type=MERGE)
    refused(404, "NotFound", hosts.get_namespaced_custom_object, *BMH, "h1")


def test_client_selectors_pages_and_dry_run(hosts):
    for name, role in (("a", "cpu"), ("b", "gpu"), ("c", "gpu")):
        create(hosts, name, labels={"role": role})
    find = hosts.list_namespaced_custom_object
    found = find(*BMH, label_selector="role in (gpu),role!=cpu")["items"]
    assert [o["metadata"]["name"] for o in found] == ["b", "c"]
    page = find(*BMH, limit=2)
    rest = find(*BMH, limit=2, _continue=page["metadata"]["continue"])
    assert [o["metadata"]["name"] for o in page["items"] + rest["items"]] == ["a", "b", "c"]
    hosts.create_namespaced_custom_object(*BMH, host("ghost"), dry_run="All")
    refused(404, "NotFound", hosts.get_namespaced_custom_object, *BMH, "ghost")


def test_client_typed_core_objects(lab):
    core = client.CoreV1Api(lab.api())
    secret = client.V1Secret(
        metadata=client.V1ObjectMeta(name="typed"), string_data={"username": "admin"}
    )
    made = core.create_namespaced_secret("default", secret)
    assert base64.b64decode(made.data["username"]) == b"admin"
    assert made.metadata.uid
    core.patch_namespaced_secret("typed", "default", {"data": {"username": None}})
    assert not core.read_namespaced_secret("typed", "default").data
    core.delete_namespaced_secret("typed", "default")
    refused(404, "NotFound", core.read_namespaced_secret, "typed", "default")


def test_client_discovers_kinds_dynamically(lab):
    from kubernetes.dynamic import DynamicClient

    found = DynamicClient(lab.api()).resources.get(
        api_version="metal3.io/v1alpha1", kind="HardwareData"
    )
    assert (found.name, found.namespaced) == ("hardwaredata", True)


# kubectl


def test_kubectl_applies_labels_annotates_patches_and_describes(lab, hosts):
    lab.kubectl("apply", "-f", "-", given=json.dumps(host()))
    lab.kubectl("label", "bmh", "h1", "role=gpu")
    lab.kubectl("annotate", "bmhost", "h1", "note=hello")
    lab.kubectl("patch", "bmh", "h1", "--type=merge", "-p", '{"spec":{"online":true}}')
    changed = host() | {"spec": {"online": True, "description": "applied"}}
    lab.kubectl("apply", "-f", "-", given=json.dumps(changed))
    told = lab.kubectl("describe", "bmh", "h1").stdout
    for part in ("role=gpu", "note: hello", "Online:", "true", "applied"):
        assert part in told
    assert "h1" in lab.kubectl("get", "bmh", "-l", "role=gpu", "-o", "name").stdout


def test_kubectl_prints_the_columns(lab, hosts):
    create(hosts)
    lines = lab.kubectl("get", "bmh").stdout.splitlines()
    assert lines[0].split() == ["NAME", "STATE", "CONSUMER", "ONLINE", "ERROR", "AGE"]
    assert lines[1].split()[:2] == ["h1", "false"]
    assert "STATUS" in lab.kubectl("get", "bmh", "-o", "wide").stdout


def test_kubectl_watch_shows_changes_as_they_happen(lab, hosts):
    create(hosts)
    with subprocess.Popen(
        lab.command("get", "bmh", "-w", "--no-headers"), stdout=subprocess.PIPE, text=True
    ) as watching:
        assert "h1" in watching.stdout.readline()
        body = {"spec": {"consumerRef": {"name": "claim-1"}}}
        hosts.patch_namespaced_custom_object(*BMH, "h1", body, _content_type=MERGE)
        assert "claim-1" in watching.stdout.readline()
        watching.terminate()


def test_kubectl_delete_waits_for_the_finalizer(lab, hosts):
    create(hosts, finalizers=["test.example.com/hold"])
    with subprocess.Popen(
        lab.command("delete", "bmh", "h1"), stdout=subprocess.PIPE, text=True
    ) as deleting:
        with pytest.raises(subprocess.TimeoutExpired):
            deleting.wait(0.5)
        release = {"metadata": {"finalizers": None}}
        hosts.patch_namespaced_custom_object(*BMH, "h1", release, _content_type=MERGE)
        assert deleting.wait(10) == 0


def test_kubectl_server_side_apply_shows_the_conflict(lab, hosts):
    create(hosts)
    intent = json.dumps(host() | {"spec": {"online": True}})
    command = ("apply", "--server-side", "--field-manager=gitops", "-f", "-")
    done = lab.kubectl(*command, given=intent, check=False)
    assert done.returncode == 1
    assert 'conflict with "OpenAPI-Generator" using' in done.stderr
    lab.kubectl(*command, "--force-conflicts", given=intent)


def test_kubectl_goes_over_to_server_side_apply(lab, hosts):
    lab.kubectl("apply", "-f", "-", given=json.dumps(host()))
    intent = json.dumps(host() | {"spec": {"online": True}})
    lab.kubectl("apply", "--server-side", "-f", "-", given=intent)
    assert hosts.get_namespaced_custom_object(*BMH, "h1")["spec"]["online"] is True


def test_kubectl_creates_core_objects_and_asks_for_rights(lab):
    lab.kubectl("create", "namespace", "from-kubectl")
    lab.kubectl("-n", "from-kubectl", "create", "secret", "generic", "s", "--from-literal=a=b")
    lab.kubectl("delete", "namespace", "from-kubectl")
    assert lab.kubectl("auth", "can-i", "delete", "pods").stdout == "yes\n"
    assert "Server Version: v1.36.5" in lab.kubectl("version").stdout
    assert "baremetalhosts" in lab.kubectl("api-resources").stdout
    assert "image" in lab.kubectl("explain", "bmh.spec").stdout


def test_kubectl_refuses_what_the_schema_refuses(lab):
    wrong = json.dumps(host() | {"spec": {"online": "perhaps"}})
    done = lab.kubectl("apply", "-f", "-", given=wrong, check=False)
    assert "spec.online" in done.stderr


# The process


def test_requests_without_the_right_token_are_401(lab):
    done = lab.kubectl("--token=wrong", "get", "nodes", check=False)
    assert "Unauthorized" in done.stderr or "must be logged in" in done.stderr


def test_every_write_is_in_the_act_log(lab, hosts):
    made = create(hosts, annotations={"foreign": "kept"})
    hosts.delete_namespaced_custom_object(*BMH, "h1")
    told = [a for a in lab.acts() if a["object"] == "BareMetalHost/default/h1"][-2:]
    assert [(a["actor"], a["verb"]) for a in told] == [("api", "create"), ("api", "delete")]
    version = made["metadata"]["resourceVersion"]
    assert told[0]["before"] is None
    assert told[0]["after"]["resourceVersion"] == version
    assert told[0]["after"]["annotations"]["foreign"] == "kept"
    assert told[1]["before"]["resourceVersion"] == version
    assert told[1]["after"] is None


def test_kill_nine_loses_nothing(lab, hosts):
    made = create(hosts, finalizers=["test.example.com/hold"])
    version = made["metadata"]["resourceVersion"]
    last = lab.acts()[-1]["seq"]
    hosts.delete_namespaced_custom_object(*BMH, "h1")
    lab.stop(signal.SIGKILL)
    lab.start()
    found = hosts.get_namespaced_custom_object(*BMH, "h1")
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert found["metadata"]["deletionTimestamp"]
    seen = watch.Watch().stream(
        hosts.list_namespaced_custom_object, *BMH, resource_version=version, timeout_seconds=1
    )
    assert [event["type"] for event in seen] == ["MODIFIED"]
    create(hosts, "h2")
    assert [a["seq"] for a in lab.acts() if a["seq"] > last] == list(
        range(last + 1, lab.acts()[-1]["seq"] + 1)
    )


def test_a_stop_is_clean_while_somebody_watches(lab):
    with subprocess.Popen(
        lab.command("get", "ns", "-w"), stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout.readline()
        began = time.monotonic()
        assert lab.stop() == 0
        assert time.monotonic() - began < 5
        watching.terminate()
    lab.start()
