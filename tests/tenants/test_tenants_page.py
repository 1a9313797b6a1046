"""Pages of tenants and templates."""

from __future__ import annotations

import pytest

from tenants.models import Tenant
from tests import make

pytestmark = pytest.mark.django_db


def get(client, user, path: str, status: int = 200) -> str:
    client.force_login(user)
    answer = client.get(path)
    assert answer.status_code == status, answer.content.decode()[:2000]
    return answer.content.decode()


def test_people_see_the_tenants_they_belong_to(client, owner, support):
    make.tenant("tenant1")
    html = get(client, support, "/tenants/")
    assert "tenant1" in html and "default" in html
    assert "tenant1" not in get(client, owner, "/tenants/")


def test_the_list_asks_the_database_as_often_for_many_as_for_few(
    client, support, django_assert_num_queries
):
    make.tenant()
    client.force_login(support)
    with django_assert_num_queries(4):
        client.get("/tenants/")
    for name in ("a", "b", "c"):
        make.tenant(name)
    with django_assert_num_queries(4):
        client.get("/tenants/")


def test_the_page_shows_quota_members_clusters_and_segments(client, owner):
    Tenant.objects.filter(name="default").update(quota={"servers": 4, "gpus": 16})
    node_type = make.node_type(sku={"gpu_count": 8})
    make.claim("one-a", "ready", node_type=node_type)
    html = get(client, owner, "/tenants/default/")
    assert "1 of 4 held" in html and "8 of 16 held" in html
    assert "Owner" in html and "default-one" in html and "/clusters/default/one/" in html
    assert "Create cluster" in html and "Edit" not in html


def test_without_a_quota_the_page_says_so(client, support):
    make.tenant()
    assert "0 held, no limit" in get(client, support, "/tenants/default/")


def test_a_foreign_tenant_is_as_absent_as_one_that_never_was(client, owner1):
    make.tenant()
    get(client, owner1, "/tenants/default/", 404)
    get(client, owner1, "/tenants/never/", 404)
    get(client, owner1, "/tenants/default/edit/", 404)


def test_a_tenant_is_added_and_changed_by_the_platform_only(client, operator, owner):
    client.force_login(operator)
    answer = client.post("/tenants/new/", {"name": "blue", "servers": "3"})
    assert answer["Location"] == "/tenants/blue/"
    assert Tenant.objects.get(name="blue").quota == {"servers": 3}
    client.post("/tenants/blue/edit/", {"display_name": "Blue team", "gpus": "8"})
    blue = Tenant.objects.get(name="blue")
    assert (blue.display_name, blue.quota) == ("Blue team", {"gpus": 8})
    get(client, owner, "/tenants/new/", 403)
    get(client, owner, "/tenants/default/edit/", 403)


def test_a_taken_or_wrong_name_stands_beside_its_field(client, operator):
    make.tenant("blue")
    client.force_login(operator)
    answer = client.post("/tenants/new/", {"name": "blue"})
    assert answer.status_code == 422
    assert "There is a tenant called blue already." in answer.content.decode()
    html = client.post("/tenants/new/", {"name": "Bad Name", "servers": "-1"}).content.decode()
    assert 'value="Bad Name"' in html and "greater than or equal to 0" in html


def test_templates_show_parameters_and_body_to_everybody(client, owner):
    make.template()
    make.cluster("one")
    html = get(client, owner, "/templates/")
    assert "Tenant Virtual Cluster" in html
    html = get(client, owner, "/templates/tenant-virtual-cluster/")
    assert "Server cluster" in html and "privateNodes:" in html and "/clusters/default/one/" in html
    assert "Create cluster" in html


def test_an_older_version_of_a_template_can_be_read(client, support):
    make.template(version=1, latest=False, chart_version="0.1.0")
    make.template(version=2, chart_version="0.2.0")
    at = "/templates/tenant-virtual-cluster/"
    assert "0.2.0" in get(client, support, at)
    assert "0.1.0" in get(client, support, f"{at}?version=1")
    get(client, support, "/templates/never/", 404)


def test_a_stranger_sees_a_template_but_not_the_clusters_of_others(client, owner1):
    make.cluster("one")
    html = get(client, owner1, "/templates/tenant-virtual-cluster/")
    assert "/clusters/default/one/" not in html
