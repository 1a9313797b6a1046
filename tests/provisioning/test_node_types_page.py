"""Pages of node types: capacity, matching servers, and the form that counts them."""

from __future__ import annotations

import pytest

from provisioning.models import NodeType
from tests import make

pytestmark = pytest.mark.django_db


def get(client, user, path: str, status: int = 200) -> str:
    client.force_login(user)
    answer = client.get(path)
    assert answer.status_code == status, answer.content.decode()[:2000]
    return answer.content.decode()


def form(**change) -> dict:
    sent = {
        "provider": "fake",
        "name": "gpu",
        "selector": "role=gpu",
        "gpu_count": "4",
        "gpu_model": "H100",
        "nic_plan": ["tenant"],
        "post_seconds": "600",
        "wipe_policy": "verified",
        "cost": "0",
    }
    return {**sent, **change}


def test_everybody_sees_what_can_be_ordered(client, owner):
    make.node_type("gpu", sku={"gpu_count": 4, "gpu_model": "H100"})
    make.server()
    make.claim(state="ready", node_type=NodeType.objects.get())
    html = get(client, owner, "/node-types/")
    assert "fake.gpu" in html and "4× H100" in html
    assert "1 claimed, 1 available" in html
    assert "Add node type" not in html


def test_the_list_asks_the_database_as_often_for_many_as_for_few(
    client, support, django_assert_num_queries
):
    make.node_type("gpu")
    client.force_login(support)
    with django_assert_num_queries(8):
        client.get("/node-types/")
    for name in ("cpu", "big", "small"):
        make.node_type(name)
    with django_assert_num_queries(8):
        client.get("/node-types/")


def test_the_page_shows_servers_to_staff_and_own_claims_to_tenants(client, support, owner, owner1):
    node_type = make.node_type()
    free = make.server("spare-1")
    claim = make.claim("one-a", "ready", node_type=node_type)
    html = get(client, support, node_type.get_absolute_url())
    assert "spare-1" in html and "one-a" in html
    html = get(client, owner, node_type.get_absolute_url())
    assert free.name not in html and "one-a" in html
    assert claim.name not in get(client, owner1, node_type.get_absolute_url())


def test_an_unknown_type_is_not_found(client, support):
    get(client, support, "/node-types/fake.none/", 404)


def test_the_form_counts_matching_servers_as_it_is_typed(client, operator, owner):
    make.provider()
    make.server("a-1")
    make.server("a-2", state="failed")
    make.server("b-1", role="cpu")
    html = get(client, operator, "/node-types/matches/?provider=fake&selector=role%3Dgpu")
    assert "<b>2</b> servers of fake match, <b>1</b> can be claimed now" in html
    assert "a-1, a-2" in html and "<html" not in html
    html = get(client, operator, "/node-types/matches/?provider=fake&selector=nonsense")
    assert "is not a label" in html
    get(client, owner, "/node-types/matches/?provider=fake&selector=", 403)


def test_counting_needs_no_script_and_keeps_what_was_typed(client, operator):
    make.provider()
    make.server()
    client.force_login(operator)
    answer = client.post("/node-types/new/", form(do="count", name=""))
    html = answer.content.decode()
    assert answer.status_code == 200 and "This field is required." not in html
    assert "<b>1</b> server of fake match" in html and "role=gpu" in html
    assert not NodeType.objects.exists()


def test_a_type_is_added_with_what_it_promises(client, operator):
    make.provider()
    make.image()
    client.force_login(operator)
    assert (
        client.post("/node-types/new/", form(image="ubuntu"))["Location"] == "/node-types/fake.gpu/"
    )
    made = NodeType.objects.get()
    assert made.sku == {"gpu_count": 4, "gpu_model": "H100"}
    assert (made.selector, made.nic_plan, made.image.name) == (
        {"role": "gpu"},
        ["tenant"],
        "ubuntu",
    )


def test_errors_stand_beside_their_fields(client, operator):
    make.node_type("gpu")
    client.force_login(operator)
    answer = client.post("/node-types/new/", form(selector="oops"))
    html = answer.content.decode()
    assert answer.status_code == 422 and "is not a label" in html and "oops" in html
    html = client.post("/node-types/new/", form()).content.decode()
    assert "fake has a type called gpu already." in html


def test_a_type_is_changed_and_keeps_its_name(client, operator):
    node_type = make.node_type("gpu")
    client.force_login(operator)
    at = f"{node_type.get_absolute_url()}edit/"
    assert "role=gpu" in client.get(at).content.decode()
    client.post(at, form(selector="role=gpu\nzone=b", name="other"))
    node_type.refresh_from_db()
    assert node_type.selector == {"role": "gpu", "zone": "b"} and node_type.name == "gpu"


def test_a_tenant_may_not_add_one(client, owner):
    get(client, owner, "/node-types/new/", 403)
