"""What was refused, for people: a notice on the page, errors beside their fields, the 403 page."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import PermissionDenied
from django.http import Http404

from gpucloud import policy, ui
from gpucloud.drivers import DriverError
from gpucloud.problems import Denied, Problem
from gpucloud.reasons import reason

Refusal = Problem | DriverError


def require(user: policy.Person, verb: str, obj: Any) -> None:
    """Answer with the 403 page, which names the roles that may, unless this person may."""
    try:
        policy.require(user, verb, obj)
    except Denied as denied:
        raise PermissionDenied(denied.message) from denied


def notice(refusal: Refusal) -> ui.Notice:
    """The refusal as pages show it: what happened, what it means, what to do now."""
    known = reason(refusal.code)
    hint = getattr(refusal, "hint", "") or known.next
    facts = [("Means", known.sentence), ("Next", hint)]
    return ui.Notice(refusal.message, "", "bad", "warn", refusal.code, facts)


def status(refusal: Refusal) -> int:
    """What the page answers with: 422 for wrong values, 502 for an engine that failed us."""
    if isinstance(refusal, Problem):
        return 422 if refusal.fields else refusal.status
    return 502


def beside_fields(form: forms.BaseForm, problem: Problem, names: dict[str, str]) -> None:
    """Put a Problem's sentences beside the fields that they are about; the rest above the form.

    `names` maps the service's dotted names to the form's, where they differ.
    """
    if not problem.fields:
        form.add_error(None, f"{problem.message} {problem.next}")
    for at, sentences in problem.fields.items():
        name = names.get(at, at)
        for sentence in sentences:
            if name in form.fields:
                form.add_error(name, sentence)
            else:
                form.add_error(None, f"{at}: {sentence}")


def platform_only(user: policy.Person) -> None:
    """404 for people who do not see what lies under tenants' objects."""
    if not policy.sees_platform(user):
        raise Http404
