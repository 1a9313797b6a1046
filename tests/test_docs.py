"""The README and docs/ say what the code does."""

from __future__ import annotations

import re
from configparser import ConfigParser
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from gpucloud.supervisor.demo import _lab, _product, valkey

ROOT = Path(settings.BASE_DIR)
README = (ROOT / "README.md").read_text()
DOORS = {
    "door": "https://127.0.0.1:1",
    "valkey": "redis://:secret@127.0.0.1:2/0",
    **dict.fromkeys(("lab", "images", "kube", "ironic"), "http://127.0.0.1:3"),
}


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_column(title: str) -> set[str]:
    """The words in code quotes that begin a row of the section's tables."""
    return set(re.findall(r"^\| `([^`]+)` \|", section(title), re.M))


def test_the_page_of_lifecycles_is_what_the_tables_print():
    out = StringIO()
    call_command("lifecycles", stdout=out)
    assert (ROOT / "docs/lifecycles.md").read_text() == out.getvalue(), (
        "run: python manage.py lifecycles > docs/lifecycles.md"
    )


def test_every_process_of_the_supervisor_is_described(tmp_path, monkeypatch):
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.delenv("REDIS_URL_FILE", raising=False)
    (tmp_path / "run").mkdir()
    children = [*valkey(tmp_path, DOORS), *_lab(DOORS), *_product(DOORS, 8000)]
    assert first_column("Processes") == {"supervisor", *(child.name for child in children)}


def test_every_setting_is_described():
    read = (ROOT / "gpucloud/settings.py").read_text()
    names = set(re.findall(r'(?:\benv|environ\.get)\(\s*"([A-Z_]+)"', read))
    names |= set(re.findall(r'_key\("[^"]+", "([A-Z_]+)"', read))
    assert first_column("Settings") == names - {"GPUCLOUD_TESTING"}


def test_every_marker_is_described():
    config = ConfigParser()
    config.read(ROOT / ".pytest.ini")
    markers = config["pytest"]["markers"].strip().splitlines()
    assert first_column("Tests and CI") == {line.split(":")[0].strip() for line in markers}


def test_every_package_that_runs_the_product_has_its_reason():
    product = (ROOT / ".requirements.in").read_text().split("# development and tests")[0]
    names = re.findall(r"^([a-z-]+)", product, re.M)
    missing = [name for name in names if not re.search(rf"^\| .*\b{name}\b", README, re.M)]
    assert not missing


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md"))]
)
def test_every_file_that_a_page_links_to_is_there(page):
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text())
    assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []
