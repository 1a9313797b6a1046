"""Page or fragment: one view for both."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django_htmx.middleware import HtmxMiddleware

from gpucloud.pages import page


def answer(path: str, **headers: str) -> HttpResponse:
    def view(request: HttpRequest) -> HttpResponse:
        fragments = {"list": "ui/empty.html"}
        return page(request, "errors/404.html", {"title": "Nothing yet", "listing": 1}, fragments)

    request = RequestFactory().get(path, **{f"HTTP_{key}": value for key, value in headers.items()})
    request.user = _Nobody()  # type: ignore[assignment]
    return HtmxMiddleware(view)(request)  # type: ignore[arg-type,return-value]


class _Nobody:
    is_authenticated = True
    theme = "auto"

    def get_username(self) -> str:
        return "nobody"


def text(response: Any) -> str:
    return str(response.content.decode())


def test_a_browser_gets_the_page() -> None:
    assert "<!doctype html>" in text(answer("/x/"))


def test_htmx_gets_the_part_it_asked_for_under_a_clean_address() -> None:
    got = answer("/x/?q=&state=a&state=b&page=", HX_REQUEST="true", HX_TARGET="list")
    assert "<!doctype html>" not in text(got)
    assert "Nothing yet" in text(got)
    assert got["HX-Push-Url"] == "/x/?state=a&state=b"
    assert "HX-Target" in got["Vary"]


def test_htmx_gets_the_page_for_an_unknown_part_and_when_it_goes_back() -> None:
    assert "<!doctype html>" in text(answer("/x/", HX_REQUEST="true", HX_TARGET="other"))
    back = {"HX_REQUEST": "true", "HX_TARGET": "list", "HX_HISTORY_RESTORE_REQUEST": "true"}
    assert "<!doctype html>" in text(answer("/x/", **back))
