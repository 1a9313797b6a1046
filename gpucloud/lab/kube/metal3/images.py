"""What Ironic checks before a machine is touched: the URL answers, the checksum is one."""

from __future__ import annotations

from typing import Any

import aiohttp

LENGTHS = {32: "md5", 64: "sha256", 128: "sha512"}


class ImageError(Exception):
    """The image cannot be deployed; the text is for errorMessage."""


async def resolve(http: aiohttp.ClientSession, image: dict[str, Any]) -> dict[str, Any]:
    """Return the image with its checksum as a value; raise ImageError when it is unusable."""
    url = str(image["url"])
    await _answers(http, url)
    checksum = str(image.get("checksum") or "").strip()
    if not checksum:
        raise ImageError(f"Image {url} has no checksum")
    if checksum.startswith(("http://", "https://")):
        checksum = _pick(await _text(http, checksum), url)
    kind = str(image.get("checksumType") or "auto")
    if kind == "auto":
        kind = LENGTHS.get(len(checksum), "")
    if LENGTHS.get(len(checksum)) != kind:
        raise ImageError(
            f"Checksum {checksum!r} of image {url} is not a {kind or 'known kind of'} sum"
        )
    return {
        "url": url,
        "checksum": checksum.lower(),
        "checksumType": kind,
        "format": str(image.get("format") or "raw"),
    }


async def _answers(http: aiohttp.ClientSession, url: str) -> None:
    failed = f"Validation of image href {url} failed, reason: "
    try:
        async with http.head(url, ssl=False, timeout=_timeout(), allow_redirects=True) as answer:
            if answer.status != 200:
                raise ImageError(
                    f"{failed}Got HTTP code {answer.status} instead of 200"
                    " in response to HEAD request."
                )
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise ImageError(f"{failed}{error or 'no answer in time'}") from error


async def _text(http: aiohttp.ClientSession, url: str) -> str:
    try:
        async with http.get(url, ssl=False, timeout=_timeout()) as answer:
            if answer.status != 200:
                raise ImageError(
                    f"Could not read the checksum file {url}: it answered {answer.status}"
                )
            return (await answer.content.read(65536)).decode(errors="replace")
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise ImageError(
            f"Could not read the checksum file {url}: {error or 'no answer in time'}"
        ) from error


def _pick(text: str, url: str) -> str:
    """Take the sum from a checksum file: the line that names the image, else the only line."""
    name = url.rsplit("/", 1)[-1].split("?", 1)[0]
    lines = [line.split() for line in text.splitlines() if line.strip()]
    for words in lines:
        if len(words) > 1 and words[-1].lstrip("*").rsplit("/", 1)[-1] == name:
            return words[0]
    return lines[0][0] if len(lines) == 1 else ""


def _timeout() -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=15)
