"""A tenant's owner makes a cluster, watches it come, takes its kubeconfig and deletes it."""

from __future__ import annotations

import json
import re
import time

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

STEPS = ["Select", "Configure", "Setup", "Install", "Stop", "Move", "Boot", "Join", "Verify"]


def fill_pool(page, row, name, node_type):
    pool = page.get_by_role("group", name=f"Pool {row}")
    pool.get_by_label("Name").fill(name)
    pool.get_by_label("Node type").select_option(node_type)


def come_to(page, locator, seconds=120):
    """Wait for it: a page with script moves by itself, one without is read again by the person."""
    if page.evaluate("typeof htmx !== 'undefined'"):
        expect(locator).to_be_visible(timeout=seconds * 1000)
        return
    ends = time.monotonic() + seconds
    while not locator.is_visible() and time.monotonic() < ends:
        time.sleep(0.7)
        page.reload()
    expect(locator).to_be_visible()


@pytest.mark.parametrize(
    ("script", "name", "node_type", "server"),
    [
        (True, "one", "metal3.gpu-server", "bare-metal-2"),
        (False, "plain", "metal3.cpu-server", "bare-metal-1"),
    ],
)
def test_a_cluster_from_the_form_to_its_deletion(enter, cloud, script, name, node_type, server):
    page = enter("owner", script=script)
    page.goto("/clusters/")
    page.get_by_role("link", name="Create cluster").first.click()

    page.get_by_label("Name", exact=True).first.fill("One Two")
    fill_pool(page, 1, "pool-a", node_type)
    page.get_by_role("button", name="Create cluster").click()
    wrong = page.get_by_label("Name", exact=True).first
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(wrong).to_have_value("One Two")
    expect(page.locator(".field", has=wrong).locator(".error").first).to_be_visible()
    first = page.get_by_role("group", name="Pool 1")
    expect(first.get_by_label("Name")).to_have_value("pool-a")
    expect(first.get_by_label("Node type")).to_have_value(node_type)

    wrong.fill(name)
    page.get_by_role("button", name="Create cluster").click()
    expect(page).to_have_url(re.compile(f"/clusters/default/{name}/$"))
    phases = page.locator(".sequence li")
    expect(phases.filter(has_text=re.compile("network", re.I)).first).to_be_visible()
    expect(phases.filter(has_text=re.compile("ready", re.I)).last).to_be_visible()

    claim = page.locator("main table a[href^='/claims/default/']").first
    come_to(page, claim)
    claim.click()
    expect(page.locator(".timeline h3")).to_have_text(STEPS)
    if script:
        # What was written into this window is gone if the page was loaded again.
        page.evaluate("window.sameDocument = true")
    badge = page.locator("h1 + .badge")
    come_to(page, badge.filter(has_text=re.compile("^Ready")))
    assert page.locator(".timeline li[data-state=done]").count() == len(STEPS)
    expect(page.get_by_role("heading", name="Proof")).to_be_visible()
    if script:
        assert page.evaluate("window.sameDocument"), "the page was loaded again"

    page.goto(f"/clusters/default/{name}/")
    come_to(page, badge.filter(has_text=re.compile("^Ready")))
    expect(page.get_by_role("rowheader", name=server)).to_be_visible()
    with page.expect_download() as coming:
        page.get_by_role("button", name="Download kubeconfig").click()
    kubeconfig = coming.value.path()
    nodes = json.loads(cloud.kubectl("get", "nodes", "-o", "json", kubeconfig=kubeconfig))
    assert [node["metadata"]["name"] for node in nodes["items"]] == [server]

    page.goto(f"/clusters/default/{name}/")
    page.get_by_role("link", name="Delete cluster…").click()
    page.get_by_label(f"Type {name} to confirm").fill(f"{name}x")
    if not script:
        page.locator("#confirm").evaluate("field => field.removeAttribute('pattern')")
    page.get_by_role("button", name="Delete cluster").click()
    typed = page.get_by_label(f"Type {name} to confirm")
    expect(typed).to_have_value(f"{name}x")
    typed.fill(name)
    page.get_by_role("button", name="Delete cluster").click()
    expect(page.locator("main")).to_contain_text(re.compile("deleting|being deleted", re.I))
    come_to(page, badge.filter(has_text=re.compile("^Gone")))
    cloud.until(f"{server} back", lambda: cloud.servers_available(server), 30)
    assert cloud.machine(server)["power"].lower() == "off"
