"""Signing in: a wrong password, the page that was asked for, signing out."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import sign_in

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("script", [True, False])
def test_a_wrong_password_is_told_beside_its_field_and_keeps_the_name(enter, script):
    page = enter(script=script)
    page.goto("/servers/")
    sign_in(page, "admin", "not the password")
    field = page.get_by_label("Password")
    expect(field).to_have_attribute("aria-invalid", "true")
    beside = page.locator(".field", has=field).get_by_role("alert")
    expect(beside).to_contain_text("do not fit together")
    expect(page.get_by_label("User name")).to_have_value("admin")
    expect(field).to_have_value("")
    expect(field).to_be_focused()

    sign_in(page, "admin")
    expect(page).to_have_url("/servers/")
    expect(page.get_by_role("heading", name="Servers", level=1)).to_be_visible()


@pytest.mark.parametrize("script", [True, False])
def test_signing_out_ends_every_page(enter, script):
    page = enter(script=script)
    sign_in(page, "owner1")
    page.locator("details.whoami summary").click()
    page.get_by_role("button", name="Sign out").click()
    page.goto("/claims/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
