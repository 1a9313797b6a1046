"""Every page that links lead to, for every role: sound, narrow, dark, and without secrets."""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.conftest import PASSWORD
from tests.shots import NOT_PAGES, shape

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent
SOUND = (HERE / "soundness.js").read_text().partition("*/")[2]
CONTRAST = (HERE / "contrast.js").read_text().partition("*/")[2]
SIDEWAYS = """() => [...document.querySelectorAll('body *')]
  .filter((el) => el.getBoundingClientRect().right > innerWidth + 1 && el.checkVisibility())
  .slice(-1).map((el) => el.outerHTML.slice(0, 100))"""
LINK = re.compile(r'href="(/[^"#]*)"')
FRAGMENT = re.compile(r'(?:href|hx-get)="(/[^"#]*)"')


# One of a shape may be empty; these are not, or have words of their own for it.
WITH_CONTENT = ["/node-types/metal3.gpu-b/", "/no-such-page/", "/claims/?q=nothing-like-it"]


@pytest.fixture(scope="module")
def lived_in(two, cloud):
    """Something of everything: ready, failed and waiting claims, and a server in maintenance."""
    two.settled()
    cloud.create("tenant2", "waits", {"gpu": "metal3.gpu-b"})
    cloud.call("POST", "/servers/dgx-02/maintenance/", {"on": True, "reason": "A fan is loud"})

    def waiting():
        found = cloud.claims("tenant2", "waits")
        return found and found[0]["code"] == "WAITING_FOR_CAPACITY"

    cloud.until("a claim waits", waiting, 60)
    yield two
    cloud.call("DELETE", "/clusters/tenant2/waits/")
    cloud.call("POST", "/servers/dgx-02/maintenance/", {"on": False})


def pages_of(page, links, per_shape):
    """Path and text of what this person reaches by links, at most so many of a shape."""
    seen, waiting, shapes = set(), ["/"], {}
    while waiting:
        path = waiting.pop(0)
        if path in seen or path.startswith(NOT_PAGES):
            continue
        seen.add(path)
        kind = shape(path)
        if shapes.get(kind, 0) >= per_shape:
            continue
        answer = page.request.get(path)
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        assert answer.status in (200, 403), (path, answer.status)
        shapes[kind] = shapes.get(kind, 0) + 1
        text = answer.text()
        waiting += [urlsplit(html.unescape(link)).path for link in links.findall(text)]
        yield path, text


def secrets_of(cloud, cluster):
    """Every secret of this installation and its lab, by where it comes from."""
    found = {}

    def note(name, value):
        if len(str(value)) >= 8:
            found.setdefault(str(value).strip(), name)

    for kind, owners in json.loads((cloud.data / "lab" / "credentials.json").read_text()).items():
        for name, login in owners.items():
            note(f"{kind} {name}", login["password"])
    for name in ("demo-token", "lab/token", "keys/secret_key", "keys/encryption.key"):
        note(name, (cloud.data / name).read_text())
    note("the accounts' password", PASSWORD)
    for line in (cloud.data / "lab" / "kube" / "kubeconfig").read_text().splitlines():
        key, _, value = line.strip().partition(": ")
        if key in ("token", "client-key-data"):
            note(f"host cluster's {key}", value.strip("'\""))
    _, kubeconfig = cloud.call("POST", f"/clusters/{cluster}/kubeconfig/", {})
    for key, value in re.findall(r"(token|client-key-data): *(\S+)", kubeconfig):
        note(f"kubeconfig's {key}", value)
    for one in json.loads(cloud.kubectl("get", "secrets", "-A", "-o", "json"))["items"]:
        for key, value in one.get("data", {}).items():
            text = base64.b64decode(value).decode(errors="replace")
            if key in ("password", "token", "client-key"):
                note(f"{one['metadata']['name']} {key}", text)
            for token in re.findall(r"token=([a-z0-9]{6}\.[a-z0-9]{16})", text):
                note("join token", token)
                note("join token's secret", token.partition(".")[2])
    return found


@pytest.fixture(scope="module")
def secrets(cloud, lived_in):
    found = secrets_of(cloud, "tenant1/two")
    kinds = " ".join(found.values())
    for kind in ("bmc dgx-01", "switch", "join token", "kubeconfig", "host cluster", "demo-token"):
        assert kind in kinds, f"nothing to look for: {kind}"
    return found


@pytest.mark.parametrize("role", ["admin", "support", "auditor", "owner", "owner1", "owner2"])
def test_no_page_of_any_role_holds_a_secret(enter, secrets, role):
    page = enter(role)
    count = 0
    for path, text in pages_of(page, FRAGMENT, per_shape=8):
        plain = html.unescape(text)
        leaks = [name for secret, name in secrets.items() if secret in plain]
        assert leaks == [], (path, leaks)
        count += 1
    assert count >= 15


@pytest.mark.parametrize("role", ["admin", "owner1"])
def test_every_page_is_sound_fits_a_narrow_screen_and_reads_well_in_both_themes(
    enter, lived_in, role
):
    page = enter(role)
    wrong = []
    paths = [path for path, _ in pages_of(page, LINK, per_shape=1)]
    for path in [*paths, lived_in.good, lived_in.broken, *WITH_CONTENT]:
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(path)
        found = page.evaluate(SOUND)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found += [f"{scheme}: {weak}" for weak in page.evaluate(CONTRAST)]
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 844})
            if page.evaluate("document.documentElement.scrollWidth") > width:
                found.append(f"scrolls sideways at {width}: {page.evaluate(SIDEWAYS)}")
        wrong += [f"{path}: {one}" for one in found]
    assert not wrong, "\n".join(wrong)
