"""Everything by keyboard: the skip link first, a ring on what has focus, every control reached."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

# Controls that a person should reach, as numbers written onto them.
COUNT = """() => {
  const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary')]
    .filter((el) => el.tabIndex >= 0 && !el.disabled && el.type !== 'hidden'
      && el.checkVisibility({ visibilityProperty: true })
      // Of radio buttons that belong together, Tab reaches one.
      && !(el.type === 'radio' && !el.checked))
  all.forEach((el, at) => { el.dataset.control = at })
  return all.length
}"""
MISSED = """(reached) => [...document.querySelectorAll('[data-control]')]
  .filter((el) => !reached.includes(el.dataset.control))
  .map((el) => el.outerHTML.slice(0, 110))"""
HERE = """() => {
  const el = document.activeElement
  if (!el || el === document.body) return null
  const near = [el, el.closest('label'), el.closest('.search'), el.nextElementSibling]
  const ringed = near.filter(Boolean).some((one) => {
    const style = getComputedStyle(one)
    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2
  })
  return { control: el.dataset.control ?? null, ringed, what: el.outerHTML.slice(0, 110) }
}"""


PLACES = [
    "/",
    "/servers/",
    "/servers/dgx-01/",
    "/servers/register/",
    "/clusters/new/",
    "/networks/",
]


@pytest.mark.parametrize("path", PLACES)
def test_tab_reaches_every_control_and_shows_where_it_is(enter, path):
    page = enter("admin")
    page.goto(path)
    # Unanswered: a panel that read itself again in between would hand out new controls.
    page.route("**/*", lambda route: None)
    total = page.evaluate(COUNT)
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to content")
    reached, bare = set(), []
    for _ in range(total + 5):
        here = page.evaluate(HERE)
        if here is None or here["control"] in reached:
            break
        if here["control"] is not None:
            reached.add(here["control"])
        if not here["ringed"]:
            bare.append(here["what"])
        page.keyboard.press("Tab")
    missed = page.evaluate(MISSED, list(reached))
    assert missed == []
    assert bare == []


def test_the_skip_link_leads_past_the_side_bar(enter):
    page = enter("admin")
    page.goto("/servers/")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


def test_shortcuts_lead_where_their_list_says(enter):
    page = enter("admin")
    page.goto("/")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page).to_have_url("/servers/")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tbody tr").nth(1).get_by_role("link").first).to_be_focused()
    page.keyboard.press("k")
    expect(page.locator("tbody tr").nth(0).get_by_role("link").first).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("g s")
    expect(page.get_by_label("Find anything")).to_have_value("g s")


def test_what_is_typed_into_a_lists_search_stays_while_the_list_answers(enter):
    page = enter("admin")
    page.goto("/servers/")
    search = page.locator(".toolbar input[type=search]")
    search.focus()
    # Slower than the pause after which the list asks, so that answers come between the letters.
    page.keyboard.type("dgx-03", delay=380)
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(search).to_have_value("dgx-03")
    expect(search).to_be_focused()


def test_focus_stays_where_it_is_while_an_overview_reads_itself_again(enter, cloud):
    page = enter("admin")
    page.goto("/")
    link = page.locator("#overview a[href]").first
    link.focus()
    href = link.get_attribute("href")
    page.locator("#overview").evaluate("el => { el.dataset.old = 'yes' }")
    expect(page.locator("#overview[data-old]")).to_have_count(0, timeout=12_000)
    assert page.evaluate("document.activeElement.getAttribute('href')") == href


@pytest.mark.parametrize("theme", ["Dark", "Light"])
def test_a_theme_is_kept_for_the_person_on_every_page(enter, theme):
    page = enter("owner2", color_scheme="light" if theme == "Dark" else "dark")
    page.goto("/")
    page.locator("details.whoami summary").click()
    with page.expect_response(lambda answer: "/me/theme/" in answer.url):
        page.get_by_role("button", name=theme).click()
    page.goto("/clusters/")
    expect(page.locator("html")).to_have_attribute("data-theme", theme.lower())
    scheme = page.evaluate("getComputedStyle(document.documentElement).colorScheme")
    assert scheme == theme.lower()
