"""What a role cannot do is not offered; what a tenant does not own does not exist for it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

# Forms that change nothing but the reader's own view.
HARMLESS = ("/me/theme/", "/sign-out/")
POSTS = """() => [
  ...[...document.querySelectorAll('form[method=post]')]
    .map((form) => new URL(form.action).pathname),
  ...[...document.querySelectorAll('[hx-post]')].map((one) => one.getAttribute('hx-post')),
]"""
CHANGES = re.compile("Create|Register|Add|Delete|Release|Retry|Edit|Power|Put|Change")
TOPIC = """([topics, origin]) => new Promise((settle) => {
  const socket = new WebSocket(`${origin}/live/?${topics.map((t) => `t=${t}`).join('&')}`)
  const heard = []
  socket.onmessage = (message) => heard.push(message.data)
  socket.onclose = (event) => settle([event.code, heard])
  setTimeout(() => settle([0, heard]), 4000)
})"""


def test_an_auditor_is_offered_nothing_that_changes_anything(enter, two):
    two.settled()
    page = enter("auditor")
    places = ["/", "/servers/", "/servers/dgx-01/", two.good, two.broken, "/claims/", "/clusters/"]
    places += ["/clusters/tenant1/two/", "/networks/", "/networks/ethernet/rack/", "/images/"]
    places += ["/node-types/", "/node-types/metal3.gpu-b/", "/providers/", "/providers/metal3/"]
    places += ["/tenants/", "/tenants/tenant1/", "/templates/", "/activity/"]
    for place in places:
        assert page.goto(place).status == 200, place
        posts = page.evaluate(POSTS)
        assert [action for action in posts if action not in HARMLESS] == [], place
        offered = page.locator("main a.button").filter(has_text=CHANGES)
        assert offered.all_inner_texts() == [], place
    forms = ["/servers/register/", "/node-types/new/", "/clusters/new/", f"{two.good}release/"]
    for place in forms:
        assert page.goto(place).status == 403, place
        expect(page.locator("main")).to_contain_text("role")


def test_another_tenants_objects_do_not_exist_on_pages_rest_and_socket(enter, two, cloud):
    cluster = cloud.get("/clusters/tenant1/two/")
    claim = cloud.get(f"/node-{two.good.strip('/')}/")
    segment = next(s for s in cloud.listed("/segments/") if s["tenant"] == "tenant1")
    owner, stranger = enter("owner1"), enter("owner2")
    pages = [two.good, "/clusters/tenant1/two/", "/tenants/tenant1/"]
    pages += [f"/networks/ethernet/{segment['name']}/"]
    pages += [f"/o/{one['uid']}/" for one in (cluster, claim, segment)]
    rest = ["/clusters/tenant1/two/", f"/node-{two.good.lstrip('/')}", f"/o/{claim['uid']}/"]
    pages += [f"/api/v1{path}" for path in rest]
    for path in pages:
        assert owner.request.get(path).status == 200, path
        assert stranger.request.get(path).status == 404, path
    stranger.goto("/claims/")
    expect(stranger.locator("main")).not_to_contain_text("two")

    topics = [f"claim:{claim['uid']}", f"cluster:{cluster['uid']}", f"segment:{segment['uid']}"]
    where = f"ws://127.0.0.1:{cloud.port}"
    owner.goto("/")
    code, heard = owner.evaluate(TOPIC, [topics, where])
    assert code == 0 and any(claim["uid"] in text for text in heard)
    code, heard = stranger.evaluate(TOPIC, [topics, where])
    assert code == 4404, "nothing that this person may follow"
    assert all(text.startswith("<!-- refused") for text in heard) and len(heard) == len(topics)
