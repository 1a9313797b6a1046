"""A page whose web process dies says so, and is whole again without anybody's help."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

# What Chromium, and the extension that holds the socket, say of a server that is away.
BROKEN = r"WebSocket|ERR_CONNECTION|50[023]|console: \[object Event\]"


def test_a_page_that_lost_its_server_says_so_and_heals_by_itself(enter, two, cloud):
    two.settled()
    page = enter("owner1", expected=BROKEN)
    page.goto(two.good)
    page.evaluate("window.sameDocument = true")
    badge = page.locator("h1 + .badge")
    expect(badge).to_have_text(re.compile("^Ready"))
    expect(page.locator("#live-mark")).to_have_text("Live")
    status, answer = cloud.call("DELETE", "/clusters/tenant1/two/")
    assert status == 202, answer

    cloud.kill("web")
    expect(page.locator("#paused")).to_be_visible(timeout=10_000)
    expect(page.locator("#paused")).to_contain_text("Live updates paused")
    expect(page.locator("#live-mark")).to_have_text("Paused")
    expect(page.locator("#paused")).to_be_hidden(timeout=60_000)
    expect(page.locator("#live-mark")).to_have_text("Live")
    expect(badge).to_have_text(re.compile("^Gone"), timeout=120_000)
    assert page.evaluate("window.sameDocument"), "the page was loaded again"
    cloud.faults(two.broken_server)
