"""Who is in which segment, what happened, and links that stay."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("script", [True, False])
def test_lanes_lead_to_a_segment_and_its_events_to_a_link_that_stays(enter, cloud, script):
    page = enter("admin", script=script)
    page.goto("/networks/")
    lanes = page.locator(".lane")
    expect(lanes.filter(has_text="provisioning")).to_contain_text("dgx-01")
    expect(lanes.filter(has_text="quarantine")).to_contain_text("reaches nothing")
    lanes.get_by_role("link", name=re.compile("^rack")).click()
    expect(page.get_by_role("heading", name="rack", level=1)).to_be_visible()
    page.get_by_role("button", name="Read the switch now").click()
    expect(page.locator("body")).to_contain_text("as read now")

    page.goto("/activity/?kind=segment")
    page.get_by_role("row", name=re.compile("rack")).get_by_role("link", name="rack").first.click()
    expect(page).to_have_url(re.compile("/networks/ethernet/rack/$"))
    page.goto("/activity/")
    expect(page.locator("tbody tr").first).to_be_visible()

    page.goto("/servers/dgx-01/")
    page.get_by_role("link", name="Permanent link").click()
    expect(page.get_by_role("heading", name="dgx-01", level=1)).to_be_visible()
    uid = cloud.get("/servers/dgx-01/")["uid"]
    page.goto(f"/activity/?object={uid}")
    expect(page.locator(".lede")).to_contain_text("What happened to dgx-01 only")


def test_a_search_finds_objects_of_every_kind(enter):
    page = enter("admin")
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type("dgx-0")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_contain_text("dgx-03")
