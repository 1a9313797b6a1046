"""Servers and node types by hand: registering, power, maintenance, an orderable shape."""

from __future__ import annotations

import json
import re
from uuid import uuid4

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def lab_file(cloud, name):
    return json.loads((cloud.data / "lab" / name).read_text())


def act(page, server, label, button=None):
    """Follow the action's link on the server's page and press its button."""
    page.goto(f"/servers/{server}/")
    page.get_by_role("link", name=f"{label}…").click()
    page.locator("form.confirm button").last.click()


@pytest.fixture(scope="module")
def spare(cloud):
    """The rack's dgx-04 under its present name, with its BMC's login."""
    rack = lab_file(cloud, "rack.json")
    one = next(server for server in rack["servers"] if server["name"] == "dgx-04")
    doors = json.loads((cloud.data / "doors.json").read_text())
    login = lab_file(cloud, "credentials.json")["bmc"]["dgx-04"]
    address = doors["bmc-dgx-04"]
    return {"nics": one["nics"], "address": address, "known": "dgx-04", **login}


@pytest.mark.parametrize("script", [True, False])
def test_a_server_is_retired_registered_again_switched_and_maintained(enter, spare, script):
    page = enter("admin", script=script)
    old, name = spare["known"], f"dgx-{uuid4().hex[:6]}"
    page.goto(f"/servers/{old}/")
    page.get_by_role("link", name="Retire…").click()
    page.get_by_label(f"Type {old} to confirm").fill(old)
    page.get_by_role("button", name=f"Retire {old}").click()
    spare["known"] = name

    page.goto("/servers/")
    page.get_by_role("link", name="Register server").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Labels").fill("role=spare")
    page.get_by_label(re.compile("^Address")).fill(f"{spare['address']}/redfish/v1")
    page.get_by_label("User name").fill(spare["username"])
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Test connection").click()
    tested = page.locator("#connection")
    expect(tested).to_contain_text("The test failed")
    expect(tested).to_contain_text(re.compile("login|password|credential", re.I))
    expect(page.get_by_label("Name", exact=True)).to_have_value(name)
    page.get_by_label("Password").fill(spare["password"])
    page.get_by_role("button", name="Test connection").click()
    expect(tested).to_contain_text("answers and accepts the login")

    page.get_by_label("Password").fill(spare["password"])
    page.get_by_label("MAC address of row 1").fill("no mac")
    page.get_by_role("button", name="Register server").last.click()
    expect(page.get_by_label("MAC address of row 1")).to_have_value("no mac")
    expect(page.locator("#ports")).to_contain_text("Six pairs of hex digits")
    page.get_by_label("Password").fill(spare["password"])
    page.get_by_label("MAC address of row 1").fill(spare["nics"][0]["mac"])
    page.get_by_role("button", name="Register server").last.click()
    expect(page).to_have_url(re.compile(f"/servers/{name}/$"))
    expect(page.locator("h1 + .badge")).to_contain_text("Enrolled")

    for state in ("on", "off"):
        act(page, name, f"Power {state}")
        power = page.locator("section.panel", has_text="Power and BMC").locator("dl")
        expect(power).to_contain_text(f"Power{state.capitalize()}", timeout=20_000)

    page.get_by_role("link", name="Put in maintenance…").click()
    page.get_by_role("button", name=f"Put {name} in maintenance").click()
    expect(page.locator(".field", has=page.get_by_label("Reason"))).to_contain_text("required")
    page.get_by_label("Reason").fill("A fan is loud")
    page.get_by_role("button", name=f"Put {name} in maintenance").click()
    expect(page.locator("main")).to_contain_text("A fan is loud")
    act(page, name, "End maintenance")
    expect(page.get_by_role("link", name="Put in maintenance…")).to_be_visible()


@pytest.mark.parametrize("script", [True, False])
def test_a_node_type_is_made_with_the_count_of_matching_servers_beside_it(enter, script):
    page = enter("admin", script=script)
    name = f"big-{uuid4().hex[:6]}"
    page.goto("/node-types/")
    page.get_by_role("link", name="Add node type").first.click()
    page.get_by_label("Name", exact=True).fill(name)
    counted = page.locator("#matches")
    for labels, count in (("role=gpu", "1"), ("role=none", "0"), ("", "4")):
        page.get_by_label("Server labels").fill(labels)
        if not script:
            page.get_by_role("button", name="Count again").click()
        told = re.compile(rf"^{count} servers? of metal3 match")
        expect(counted.locator("p").first).to_have_text(told)
        expect(page.get_by_label("Name", exact=True)).to_have_value(name)

    page.get_by_label("Server labels").fill("not a label")
    page.get_by_role("button", name="Add node type").click()
    field = page.get_by_label("Server labels")
    expect(page.locator(".field", has=field)).to_contain_text("is not a label")
    expect(field).to_have_value("not a label")
    field.fill("role=gpu")
    page.get_by_role("button", name="Add node type").click()
    expect(page.get_by_role("heading", name=f"metal3.{name}", level=1)).to_be_visible()
    expect(page.locator("main")).to_contain_text("bare-metal-2")
