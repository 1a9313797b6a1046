"""OS images: what may be written to disks."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.deletion import ProtectedError

from gpucloud import history, names
from gpucloud.problems import Invalid, Problem
from provisioning.models import NodeClaim, OSImage

DIGITS = {"sha256": 64, "sha512": 128}
WRITTEN = ("url", "checksum", "checksum_type", "format")


def create(actor: str, name: str, **fields: Any) -> OSImage:
    """Make an image of {url, checksum, checksum_type, format, display_name}."""
    image = OSImage(name=name, **fields)
    _check(image)
    try:
        with transaction.atomic():
            image.save()
            history.record(image, "create", actor, f"Image {image} was made.")
    except IntegrityError as error:
        raise Invalid({"name": [f"There is an image called {name} already."]}) from error
    return image


def update(image: OSImage, actor: str, **fields: Any) -> OSImage:
    """Change an image; what is written stays while a claim is on its way to write it."""
    for name, value in fields.items():
        setattr(image, name, value)
    _check(image)
    waiting = image.claims.filter(
        state__in=(NodeClaim.State.PENDING, NodeClaim.State.PROVISIONING)
    ).first()
    if waiting and any(name in WRITTEN for name in fields):
        raise Problem(f"{waiting} is being provisioned with {image}; make a new one.", "IN_USE")
    with transaction.atomic():
        OSImage.objects.filter(pk=image.pk).update(**fields, rev=F("rev") + 1)
        image.refresh_from_db()
        history.record(
            image, "change", actor, f"Image {image}: {', '.join(sorted(fields))} changed."
        )
    return image


def remove(image: OSImage, actor: str) -> None:
    """Remove an image that nothing names any more."""
    try:
        with transaction.atomic():
            history.record(image, "remove", actor, f"Image {image} was removed.")
            OSImage.objects.get(pk=image.pk).delete()
    except ProtectedError as error:
        users = ", ".join(sorted({str(one) for one in error.protected_objects})[:5])
        raise Problem(f"Image {image} is named by {users}.", "IN_USE") from error


def _check(image: OSImage) -> None:
    errors: dict[str, list[str]] = {}
    try:
        names.check(image.name)
    except ValidationError as error:
        errors["name"] = list(error.messages)
    if problem := _url_problem(image.url):
        errors["url"] = [problem]
    digits = DIGITS.get(image.checksum_type)
    if digits is None:
        errors["checksum_type"] = [f"Choose one of {', '.join(DIGITS)}."]
    elif not re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", image.checksum):
        errors["checksum"] = [
            f"Give the {image.checksum_type} checksum: {digits} hexadecimal digits."
        ]
    if image.format not in OSImage.Format.values:
        errors["format"] = [f"Choose one of {', '.join(OSImage.Format.values)}."]
    if errors:
        raise Invalid(errors)


def _url_problem(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return "This is not a URL."
    if re.search(r"[^!-~]", url):
        # Spaces, line breaks and letters that look like others: %-encoded or not at all.
        return "Write the URL in plain ASCII without spaces; %-encode the rest."
    if parts.scheme not in ("http", "https") or not host or len(url) > 500:
        return "Give an http or https URL of 500 characters at most."
    if parts.username or parts.password:
        return "Leave user name and password out: the URL is shown to everybody."
    return ""
