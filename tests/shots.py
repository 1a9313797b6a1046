"""Screenshots of a running demo: one page of every shape, wide and narrow, light and dark.

`make shots` writes them to $GPUCLOUD_DATA/shots, to be looked at by a person.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, sync_playwright

from gpucloud.doors import data_dir, read_doors

WIDTHS = {1440: 900, 390: 844}
SCHEMES = ("light", "dark")
# Last parts of addresses that name a page and not an object.
VERBS = {"new", "register", "edit", "delete", "release", "retire", "import"}
NOT_PAGES = ("/api/", "/o/", "/static/", "/sign-in/", "/sign-out/", "/live/")


def shape(path: str) -> str:
    """What kind of page this is: /servers/a/ and /servers/b/ are the same."""
    parts = path.strip("/").split("/")
    kept = [part if part in VERBS else "x" for part in parts[1:]]
    return "-".join([parts[0] or "dashboard", *kept])


def sign_in(page: Page, base: str, password: str) -> None:
    page.goto(base + "/")
    page.fill("input[name=username]", os.environ.get("SHOTS_USER", "admin"))
    page.fill("input[name=password]", password)
    page.press("input[name=password]", "Enter")
    page.wait_for_url(lambda url: "login" not in url)


def find_pages(page: Page, base: str) -> dict[str, str]:
    """One address per shape, found by following links."""
    found: dict[str, str] = {}
    waiting = ["/"]
    while waiting:
        path = waiting.pop(0)
        if shape(path) in found or path.startswith(NOT_PAGES):
            continue
        answer = page.goto(base + path)
        kind = answer.headers.get("content-type", "") if answer else ""
        if not answer or not kind.startswith("text/html"):
            continue
        if answer.status >= 400:
            print(f"{answer.status} {path}", file=sys.stderr)
        found[shape(path)] = path
        for link in page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)"):
            url = urlsplit(link)
            if f"{url.scheme}://{url.netloc}" == base:
                waiting.append(url.path)
    return found


def shoot(browser: Browser, base: str, password: str, folder: Path) -> int:
    pages: dict[str, str] = {}
    count = 0
    for width, height in WIDTHS.items():
        for scheme in SCHEMES:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
                reduced_motion="reduce",
            )
            page = context.new_page()
            page.goto(base + "/")
            page.screenshot(path=folder / f"sign-in-{width}-{scheme}.png", full_page=True)
            sign_in(page, base, password)
            pages = pages or find_pages(page, base)
            for name, path in pages.items():
                page.goto(base + path)
                page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
            count += len(pages) + 1
            context.close()
    return count


def main() -> int:
    data = data_dir()
    base = read_doors(data).get("web", "")
    if not base:
        print("Start the demo first: make demo", file=sys.stderr)
        return 1
    password = os.environ.get("GPUCLOUD_DEMO_PASSWORD") or (
        (data / "demo-password").read_text().strip()
    )
    folder = data / "shots"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with sync_playwright() as player:
        chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
        # Chromium has no sandbox for root.
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        print(f"{shoot(browser, base, password, folder)} screenshots in {folder}")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
