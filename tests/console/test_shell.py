"""The shell: sign-in, sections by role, theme, search, error pages, and the rules of the style
sheets.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from gpucloud.models import User
from tests import make

ROOT = Path(__file__).resolve().parent.parent.parent
CSS = [ROOT / "static" / "css" / name for name in ("tokens.css", "base.css", "console.css")]


def signed_in(client: Client, user: User) -> Client:
    client.force_login(user)
    return client


def test_a_wrong_password_is_told_beside_the_field_and_the_name_is_kept(
    client: Client, admin: User
) -> None:
    page = client.post("/sign-in/", {"username": "admin", "password": "wrong"}).content.decode()
    assert "User name and password do not fit together" in page
    assert 'value="admin"' in page
    assert "wrong" not in page.replace('id="wrong"', "").replace("errors wrong", "")


def test_signing_in_leads_to_the_page_asked_for(client: Client, admin: User) -> None:
    form = {"username": "admin", "password": make.PASSWORD, "next": "/ui/"}
    assert client.post("/sign-in/", form)["Location"] == "/ui/"


def test_the_page_asked_for_cannot_be_another_site(client: Client, admin: User) -> None:
    form = {"username": "admin", "password": make.PASSWORD, "next": "https://evil.example/"}
    assert "evil" not in client.post("/sign-in/", form)["Location"]


def test_the_gallery_shows_every_component_to_staff(client: Client, support: User) -> None:
    page = signed_in(client, support).get("/ui/?toast=1")
    assert page.status_code == 200
    for words in ("NO_DHCP_OFFER", "No clusters yet", "Nothing matches", "Type tenant2 to confirm"):
        assert words in page.content.decode()


def test_the_gallery_is_not_for_tenants(client: Client, owner: User) -> None:
    assert signed_in(client, owner).get("/ui/").status_code == 404


def test_no_page_holds_inline_script_or_style(client: Client, support: User) -> None:
    page = signed_in(client, support).get("/ui/").content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)", page)
    assert "<style" not in page
    assert not re.search(r"\son[a-z]+=", page)
    assert "hx-on" not in page
    # The only inline style carries measured values.
    for style in re.findall(r'style="([^"]*)"', page):
        assert re.fullmatch(r"(--[a-z]+:[\d.]+;?)+", style), style


def test_the_side_bar_shows_tenants_only_their_sections(client: Client, owner: User) -> None:
    page = signed_in(client, owner).get("/find/?q=").content.decode()
    assert 'href="/clusters/"' in page
    assert 'href="/servers/"' not in page
    assert "Owner, default" in page


def test_the_side_bar_marks_the_current_section(client: Client, admin: User) -> None:
    from gpucloud.navigation import groups_for

    links = [link for group in groups_for(admin, "/servers/a/") for link in group["links"]]
    assert [link["section"].label for link in links if link["current"]] == ["Servers"]


def test_a_theme_is_kept_and_rendered_by_the_server(client: Client, admin: User) -> None:
    signed_in(client, admin).post(
        "/me/theme/", {"theme": "dark"}, HTTP_REFERER="http://testserver/ui/"
    )
    assert '<html lang="en" data-theme="dark">' in client.get("/ui/").content.decode()


def test_an_unknown_theme_changes_nothing_and_nobody_is_sent_elsewhere(
    client: Client, admin: User
) -> None:
    answer = signed_in(client, admin).post(
        "/me/theme/", {"theme": "neon"}, HTTP_REFERER="https://evil.example//evil.example/"
    )
    admin.refresh_from_db()
    assert admin.theme == "auto"
    assert answer["Location"] == "/"


def test_search_opens_a_single_hit_at_once(client: Client, admin: User) -> None:
    make.server("lonely-server")
    assert signed_in(client, admin).get("/find/?q=lonely")["Location"] == "/servers/lonely-server/"


def test_search_shows_nobody_what_is_not_theirs(client: Client, owner: User, owner1: User) -> None:
    make.server("secret-server")
    page = signed_in(client, owner).get("/find/?q=secret").content.decode()
    assert "Nothing holds" in page
    page = client.get("/find/?q=tenant1").content.decode()
    assert "/tenants/tenant1/" not in page


def test_a_form_without_its_token_is_refused_in_our_own_words(admin: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(admin)
    answer = strict.post("/me/theme/", {"theme": "dark"})
    assert answer.status_code == 403
    assert "Nothing was changed" in answer.content.decode()


def test_not_found_says_the_same_for_absent_and_foreign(client: Client, owner: User) -> None:
    page = signed_in(client, owner).get("/nothing/here/")
    assert page.status_code == 404
    assert "No such page, or not yours" in page.content.decode()


def test_the_broken_page_stands_alone(client: Client, settings: Any) -> None:
    from django.template.loader import get_template

    page = get_template("errors/500.html").render({})
    assert "This page broke" in page
    source = (ROOT / "templates" / "errors" / "500.html").read_text()
    assert re.findall(r"{%.*?%}|{{.*?}}", source) == []


def test_the_style_sheets_are_small() -> None:
    size = len(gzip.compress(b"".join(path.read_bytes() for path in CSS), 9))
    assert size < 12 * 1024
    assert len((ROOT / "static" / "js" / "console.js").read_text().splitlines()) < 150


def test_colours_have_names_and_only_tokens_name_them() -> None:
    for path in CSS[1:]:
        raw = re.findall(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl|oklch|lab)a?\(", path.read_text())
        assert raw == [], path.name


def _luminance(lightness: float, chroma: float, hue: float) -> float:
    """The relative luminance of an oklch colour, by the published conversion."""
    from math import cos, radians, sin

    a, b = chroma * cos(radians(hue)), chroma * sin(radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    red = 4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short
    green = -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short
    blue = -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short
    clip = [min(max(value, 0.0), 1.0) for value in (red, green, blue)]
    return 0.2126 * clip[0] + 0.7152 * clip[1] + 0.0722 * clip[2]


def _pairs() -> dict[str, list[float]]:
    found = {}
    for name, light, dark in re.findall(
        r"--([a-z-]+): light-dark\(oklch\(([\d. ]+)\), oklch\(([\d. ]+)\)\)", CSS[0].read_text()
    ):
        found[name] = [_luminance(*map(float, value.split())) for value in (light, dark)]
    return found


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_words_can_be_read_on_every_surface(theme: int) -> None:
    colours = _pairs()
    surfaces = ["page", "raised", "sunken", "hover", "selected"]
    words = ["text-strong", "text", "text-muted", "accent"]
    checked = [(word, f"surface-{surface}") for word in words for surface in surfaces]
    for tone in ("neutral", "busy", "good", "warn", "bad"):
        checked += [
            (f"{tone}-fg", f"{tone}-bg"),
            (f"{tone}-fg", "surface-raised"),
            ("text", f"{tone}-bg"),
        ]
    checked.append(("on-fill", "accent-fill"))
    for word, ground in checked:
        high, low = sorted((colours[word][theme], colours[ground][theme]), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, (word, ground)
