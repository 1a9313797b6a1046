"""Support finds a claim that stopped, reads why and what to do next, and has it tried again."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def test_support_reads_why_a_claim_stopped_and_retries_it(enter, two, cloud):
    two.settled()
    page = enter("support")
    page.goto("/")
    name = two.broken.rstrip("/").rpartition("/")[2]
    expect(page.locator("main")).to_contain_text(name)
    page.goto("/claims/?state=failed")
    page.get_by_role("link", name=name).click()
    expect(page.locator("h1 + .badge")).to_have_text("Install failed")
    notice = page.locator(".notice[data-tone=bad]").first
    told = ["Install stopped", "IMAGE_CHECKSUM", "Cause", "sha256", "Effect", "Next", "retry"]
    for words in told:
        expect(notice).to_contain_text(words)
    step = page.locator(".timeline > li[data-state=failed]")
    expect(step.get_by_role("heading")).to_have_text("Install")
    expect(page.locator("main")).not_to_contain_text("Traceback")
    expect(page.get_by_role("link", name="Release claim…")).to_have_count(0)

    cloud.faults(two.broken_server)
    page.get_by_role("button", name="Retry the step").click()
    expect(page.locator("body")).to_contain_text("is tried again")
    expect(page.locator("h1 + .badge")).to_have_text(re.compile("^Ready"), timeout=120_000)
    expect(page.get_by_role("button", name="Retry the step")).to_have_count(0)
    expect(page.locator(".notice[data-tone=bad]:visible")).to_have_count(0)
