"""Chromium in front of one running demo; every page is watched for errors while it is used."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.demo.cloud import Cloud
from tests.demo.test_main_job import SEEDS, free_port

PASSWORD = "only-for-the-browser-tests"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
# The status of an answer is judged where it is known what was asked; the two events are how htmx
# tells of a request that the next letter, or leaving the page, made needless.
NO_ERRORS = ("Failed to load resource", "htmx:sendAbort", "htmx:afterRequest")
DESKTOP = {"width": 1280, "height": 800}


@pytest.fixture(scope="session")
def cloud(tmp_path_factory):
    if running := os.environ.get("BROWSER_DEMO"):
        # The data folder of a demo that runs already, with this password: for writing tests.
        doors = json.loads((Path(running) / "doors.json").read_text())
        yield Cloud(Path(running), int(doors["web"].rpartition(":")[2]))
        return
    made = Cloud(tmp_path_factory.mktemp("browser"), free_port(), GPUCLOUD_DEMO_PASSWORD=PASSWORD)
    made.start()
    try:
        made.until("the rack available", lambda: made.servers_available(*SEEDS, "dgx-04"), 90)
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def chromium():
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Watch:
    """What no page may do while it is used: log an error, break its policy, miss a file."""

    def __init__(self, page, expected):
        self.problems = []
        self.expected = re.compile(expected) if expected else None
        page.on("console", self._said)
        page.on("pageerror", lambda error: self._note(f"script error: {error}"))
        page.on("response", self._answered)

    def _said(self, message):
        if message.type == "error" and not message.text.startswith(NO_ERRORS):
            self._note(f"console: {message.text}")

    def _answered(self, answer):
        navigation = answer.request.is_navigation_request()
        if answer.status >= 500 or (answer.status >= 400 and not navigation):
            self._note(f"{answer.status} {answer.url}")

    def _note(self, problem):
        if not (self.expected and self.expected.search(problem)):
            self.problems.append(problem)


@pytest.fixture(scope="session")
def _signed_in():
    """Cookies by user name: each person signs in once, by the form."""
    return {}


@pytest.fixture
def enter(chromium, cloud, _signed_in):
    """A page in a browser of its own, signed in as this person; it is judged when the test ends."""
    watches, contexts = [], []

    def open_page(name="", script=True, expected="", **options):
        context = chromium.new_context(
            base_url=f"http://127.0.0.1:{cloud.port}",
            java_script_enabled=script,
            storage_state=_signed_in.get(name),
            viewport=options.pop("viewport", DESKTOP),
            reduced_motion="reduce",
            **options,
        )
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        watches.append(Watch(page, expected))
        if name and name not in _signed_in:
            sign_in(page, name)
            _signed_in[name] = context.storage_state()
        return page

    yield open_page
    for context in contexts:
        context.close()
    problems = [problem for watch in watches for problem in watch.problems]
    assert not problems, "\n".join(problems)


def sign_in(page, name, password=PASSWORD):
    if "/sign-in/" not in page.url:
        page.goto("/sign-in/")
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()


class Two:
    """Cluster `two` of tenant1: a claim that becomes ready, and one whose image is corrupted."""

    broken_server = "bare-metal-4"

    def __init__(self, cloud):
        self.cloud = cloud
        cloud.faults(self.broken_server, corrupt_image=True)
        cloud.create("tenant1", "two", {"cpu": "metal3.cpu-b", "gpu": "metal3.gpu-b"})
        claims = cloud.until("both claims", self._both, 60)
        self.good, self.broken = (f"/claims/tenant1/{claims[pool]}/" for pool in ("cpu", "gpu"))

    def _both(self):
        found = {one["pool"]: one["name"] for one in self.cloud.claims("tenant1", "two")}
        return found if len(found) == 2 else None

    def settled(self):
        """Wait until one claim is ready and the other has failed, or was helped since."""

        def look():
            states = {one["pool"]: one["state"] for one in self.cloud.claims("tenant1", "two")}
            return states.get("cpu") == "ready" and states.get("gpu") in ("failed", "ready")

        self.cloud.until("one claim ready, one failed", look, 120)
        return self


@pytest.fixture(scope="session")
def two(cloud):
    return Two(cloud)
