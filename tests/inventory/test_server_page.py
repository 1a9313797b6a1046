"""The page of one server: what it shows, and what people do there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from gpucloud.models import Event, Secret, Step
from inventory.drivers.fake import FakeBmc
from inventory.models import Server, WipeRecord
from inventory.services import servers
from provisioning.models import Operation
from tests import make

pytestmark = pytest.mark.django_db


def text_of(response) -> str:
    return " ".join(response.content.decode().split())


@pytest.fixture
def server(db):
    return make.server("gpu-1", gpus=2)


@pytest.fixture
def as_admin(client, admin):
    client.force_login(admin)
    return client


def world(server):
    """The server in memory behind the fake driver."""
    from inventory.services.bmcs import driver_of

    driver_of(server.bmc).power()
    return FakeBmc.worlds[server.bmc.config.get("name", "fake")]


def test_it_shows_identity_power_hardware_ports_and_wipes(as_admin, server):
    page = text_of(as_admin.get("/servers/gpu-1/"))
    assert "SN-gpu-1" in page and server.system_uuid in page
    assert "gpu-1-d1" in page and "gpu-1-g0" in page
    assert "52:54:00:00:00:01" in page and "leaf-1 swp1" in page and "VLAN 10" in page
    assert "Verified by our agent" in page and "unsigned" in page
    assert "10.10.0.11/22" in page


def test_an_old_reading_of_the_power_is_unknown_and_not_off(as_admin, server):
    Server.objects.update(power="off", power_at=timezone.now() - timedelta(minutes=5))
    page = text_of(as_admin.get("/servers/gpu-1/"))
    assert "Unknown" in page and "read as off, longer than 2 min ago" in page


def test_wanted_stands_beside_observed(as_admin):
    claim = make.claim(state="ready")
    port = claim.server.interfaces.get()
    make.attachment(claim.server, make.segment("blue", vlan=150))
    port.link.seen_vlan = 999
    port.link.seen_at = timezone.now()
    port.link.save()
    page = text_of(as_admin.get(f"/servers/{claim.server.name}/"))
    assert "blue</a> · VLAN 150" in page
    assert '<span class="verdict" data-tone="warn">' in page and "VLAN 999" in page


def test_the_running_operation_shows_its_steps(as_admin, server):
    claim = make.claim(state="provisioning")
    operation = make.operation(claim, at="install")
    Step.objects.filter(owner_uid=operation.uid, current=True).update(
        state="waiting", sentence="Writing the image.", percent=40, started=timezone.now()
    )
    page = text_of(as_admin.get(f"/servers/{claim.server.name}/"))
    assert "Writing the image." in page and "40 %" in page and "Provisioning" in page


def test_a_server_out_of_service_says_code_meaning_and_next_step(as_admin):
    make.server("bad-1", "failed", code="WIPE_FAILED", problem="Drive nvme0 answered status 5.")
    page = text_of(as_admin.get("/servers/bad-1/"))
    assert "WIPE_FAILED" in page and "Drive nvme0 answered status 5." in page
    assert "Replace the drive or retry" in page


def test_an_action_that_is_not_possible_is_disabled_with_its_reason(as_admin, server):
    make.operation(server, "inspect")
    page = text_of(as_admin.get("/servers/gpu-1/"))
    assert "Not now: Inspection is under way; wait until it has ended." in page
    assert 'href="/servers/gpu-1/power-on/"' not in page
    answer = as_admin.post("/servers/gpu-1/power-on/")
    assert answer.status_code == 409
    assert "Inspection is under way" in text_of(answer)


def test_power_is_switched_after_a_page_that_names_the_consequence(as_admin, server):
    asked = text_of(as_admin.get("/servers/gpu-1/power-on/"))
    assert "Power on gpu-1" in asked and "boots what its firmware finds" in asked
    answer = as_admin.post("/servers/gpu-1/power-on/", follow=True)
    assert "gpu-1 is on, read back at the BMC." in text_of(answer)
    server.refresh_from_db()
    assert server.power == "on"
    assert Event.objects.filter(object_uid=server.uid, verb="power", actor="admin").exists()


def test_powering_off_a_held_server_names_claim_and_tenant(as_admin):
    claim = make.claim("one-gpu", "ready")
    page = text_of(as_admin.get(f"/servers/{claim.server.name}/power-off/"))
    assert "held by claim one-gpu of tenant default" in page


def test_a_tenants_system_is_not_powered_on_outside_of_its_segment(as_admin):
    claim = make.claim(state="failed")
    answer = as_admin.post(f"/servers/{claim.server.name}/power-on/")
    assert answer.status_code == 409
    assert "may hold a tenant" in text_of(answer)
    make.attachment(claim.server, make.segment("blue", vlan=150))
    assert as_admin.post(f"/servers/{claim.server.name}/power-on/").status_code == 302


def test_a_bmc_that_does_not_answer_is_shown_in_place_with_the_next_step(as_admin, server):
    world(server).faults.add("unreachable")
    answer = as_admin.post("/servers/gpu-1/power-on/")
    page = text_of(answer)
    assert answer.status_code == 502
    assert "BMC_UNREACHABLE" in page and "Next" in page
    assert "Traceback" not in page


def test_an_inspection_is_started_once(as_admin, server):
    assert as_admin.post("/servers/gpu-1/inspect/").status_code == 302
    assert as_admin.post("/servers/gpu-1/inspect/").status_code == 409
    assert Operation.objects.filter(server=server, kind="inspect").count() == 1


def test_maintenance_wants_a_reason_and_keeps_what_was_typed(as_admin, server):
    answer = as_admin.post(
        "/servers/gpu-1/maintenance/", {"reason": "", "until": "2027-01-02T10:00"}
    )
    assert answer.status_code == 422
    assert "2027-01-02T10:00" in answer.content.decode()
    assert "This field is required" in text_of(answer)
    as_admin.post("/servers/gpu-1/maintenance/", {"reason": "new fans"})
    assert "is in maintenance: new fans" in text_of(as_admin.get("/servers/gpu-1/"))
    as_admin.post("/servers/gpu-1/end-maintenance/")
    server.refresh_from_db()
    assert not server.maintenance


def test_quarantine_is_set_with_a_reason_and_lifted_by_a_person(as_admin, server):
    as_admin.post("/servers/gpu-1/quarantine/", {"reason": "odd traffic"})
    assert "quarantined: odd traffic" in text_of(as_admin.get("/servers/gpu-1/"))
    asked = text_of(as_admin.get("/servers/gpu-1/lift-quarantine/"))
    assert "odd traffic" in asked
    as_admin.post("/servers/gpu-1/lift-quarantine/")
    server.refresh_from_db()
    assert not server.quarantined


def test_a_server_is_declared_blank_by_its_typed_name_only(as_admin):
    make.server("new-1", "enrolled")
    answer = as_admin.post("/servers/new-1/declare-blank/", {"confirm": "new-2"})
    assert answer.status_code == 422
    assert "Type new-1 to declare" in text_of(answer) and 'value="new-2"' in answer.content.decode()
    as_admin.post("/servers/new-1/declare-blank/", {"confirm": "new-1"})
    assert Server.objects.get(name="new-1").state == "available"
    assert WipeRecord.objects.get(server__name="new-1").actor == "admin"


def test_declaring_blank_is_for_admins_and_not_for_operators(client, operator):
    make.server("new-1", "enrolled")
    client.force_login(operator)
    assert "declare-blank" not in client.get("/servers/new-1/").content.decode()
    answer = client.post("/servers/new-1/declare-blank/", {"confirm": "new-1"})
    assert answer.status_code == 403
    assert Server.objects.get(name="new-1").state == "enrolled"


def test_labels_are_edited_as_lines_and_a_wrong_line_is_kept(as_admin, server):
    assert "role=gpu" in as_admin.get("/servers/gpu-1/labels/").content.decode()
    answer = as_admin.post("/servers/gpu-1/labels/", {"labels": "role=gpu\nno label at all"})
    assert answer.status_code == 422
    assert "no label at all" in answer.content.decode()
    as_admin.post("/servers/gpu-1/labels/", {"labels": "role=gpu-b\npod=a"})
    server.refresh_from_db()
    assert server.labels == {"role": "gpu-b", "pod": "a"}


def test_a_retired_server_is_reachable_by_its_permanent_link_only(as_admin, server):
    answer = as_admin.post("/servers/gpu-1/retire/", {"confirm": "gpu-1"})
    assert answer.status_code == 302
    assert as_admin.get("/servers/gpu-1/").status_code == 404
    page = text_of(as_admin.get(f"/o/{server.uid}/"))
    assert "Retired" in page and "SN-gpu-1" in page and "Actions" not in page


def test_a_retired_machine_can_be_registered_again(as_admin, server):
    data = {"driver": "fake", "address": "", "username": "root", "password": "s3cret-word"}
    assert as_admin.post("/servers/gpu-1/bmc/", data).status_code == 302
    mac = server.interfaces.first().mac
    assert as_admin.post("/servers/gpu-1/retire/", {"confirm": "gpu-1"}).status_code == 302
    assert not Secret.objects.filter(kind="bmc").exists()
    again = servers.enroll("admin", "gpu-1", interfaces=[{"name": "nic1", "mac": mac, "roles": []}])
    assert again.pk != server.pk


def test_the_bmcs_password_is_never_shown_again(as_admin, server):
    data = {"driver": "fake", "address": "", "username": "root", "password": "s3cret-word"}
    assert as_admin.post("/servers/gpu-1/bmc/", data).status_code == 302
    for path in ("/servers/gpu-1/", "/servers/gpu-1/bmc/", "/activity/"):
        assert "s3cret-word" not in as_admin.get(path).content.decode()
    wrong = as_admin.post("/servers/gpu-1/bmc/", {**data, "driver": "redfish"})
    assert wrong.status_code == 422
    assert "s3cret-word" not in wrong.content.decode()
    assert 'value="root"' in wrong.content.decode()


@pytest.mark.parametrize("role", ["support", "auditor"])
def test_support_and_auditors_see_the_page_without_buttons(client, server, role, request):
    client.force_login(request.getfixturevalue(role))
    page = client.get("/servers/gpu-1/").content.decode()
    assert "SN-gpu-1" in page
    for action in ("power-on", "inspect", "maintenance", "retire", "labels"):
        assert f"/servers/gpu-1/{action}/" not in page
    for action in ("power-on", "inspect", "retire"):
        answer = client.post(f"/servers/gpu-1/{action}/", {"confirm": "gpu-1"})
        assert answer.status_code == 403


def test_tenants_get_404_for_pages_and_posts_alike(client, owner):
    claim = make.claim(state="ready")
    client.force_login(owner)
    base = f"/servers/{claim.server.name}/"
    assert client.get(base).status_code == 404
    assert client.post(f"{base}power-off/").status_code == 404
    assert client.get(f"/o/{claim.server.uid}/").status_code == 404


def test_the_buttons_are_read_again_alone(as_admin, server):
    headers = {"HX-Request": "true", "HX-Target": "server-head-actions"}
    part = as_admin.get("/servers/gpu-1/actions/", headers=headers).content.decode()
    assert "<html" not in part and "power-on" in part
    headers["HX-Target"] = "server-actions"
    part = as_admin.get("/servers/gpu-1/actions/", headers=headers).content.decode()
    assert "<html" not in part and "labels" in part


def test_live_fragments_hold_no_form_and_no_button(server, support):
    from gpucloud.live.fragments import ViewClass, registry

    for topic in ("server", "server-row"):
        fragment = registry()[topic]
        found = fragment.load(support, server.uid)
        text = fragment.render(found, ViewClass.of(support))
        assert "gpu-1" in text
        for word in ("<form", "csrf", "<input", "/power-on/"):
            assert word not in text


def test_sockets_of_tenants_get_no_server(server, owner):
    from gpucloud.live.fragments import registry

    assert registry()["server"].load(owner, server.uid) is None


def test_a_cable_is_recorded_and_forgotten_on_the_page(as_admin):
    server = make.server("gpu-1", cabled=False)
    fabric = make.fabric()
    port = server.interfaces.get()
    assert "No cable recorded" in text_of(as_admin.get("/servers/gpu-1/"))
    data = {"interface": port.pk, "fabric": fabric.pk, "switch": "leaf-1", "port": "swp7"}
    assert as_admin.post("/servers/gpu-1/cable/", data).status_code == 302
    page = text_of(as_admin.get("/servers/gpu-1/"))
    assert "leaf-1 swp7" in page
    assert as_admin.post("/servers/gpu-1/uncable/", {"interface": port.pk}).status_code == 302
    assert "No cable recorded" in text_of(as_admin.get("/servers/gpu-1/"))


def test_a_cable_that_a_claim_counts_on_stays(as_admin):
    claim = make.claim(state="ready")
    server = claim.server
    answer = as_admin.post(
        f"/servers/{server.name}/uncable/", {"interface": server.interfaces.get().pk}
    )
    assert answer.status_code == 409
    assert "A claim counts on it" in text_of(answer)


def test_a_taken_switch_port_is_refused_beside_its_field(as_admin, server):
    link = server.interfaces.get().link
    other = make.server("gpu-2", cabled=False)
    data = {"interface": other.interfaces.get().pk, "fabric": link.fabric_id}
    answer = as_admin.post(
        "/servers/gpu-2/cable/", {**data, "switch": link.switch, "port": link.port}
    )
    assert answer.status_code == 422
    assert "has the cable of gpu-1 nic1" in text_of(answer)


def test_the_provisioning_address_is_set_on_the_page(as_admin, server):
    answer = as_admin.post("/servers/gpu-1/provisioning/", {"address": "10.10.0.77"})
    assert answer.status_code == 422
    assert "with its prefix" in text_of(answer) and 'value="10.10.0.77"' in text_of(answer)
    as_admin.post("/servers/gpu-1/provisioning/", {"address": "10.10.0.77/22"})
    assert "10.10.0.77/22" in text_of(as_admin.get("/servers/gpu-1/"))
