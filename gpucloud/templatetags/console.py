"""Template tags: badge, icon, ago, duration, query, copyable, mono, panel, navigation, clock."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django import template
from django.forms import BoundField, CheckboxInput, CheckboxSelectMultiple, RadioSelect
from django.http import HttpRequest
from django.template import Context
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from gpucloud import durations, history, icons, navigation, tones
from gpucloud.models import Event
from gpucloud.ui import TONES

register = template.Library()


def _words(value: Any) -> tuple[str, str]:
    """Label and tone of whatever has them: a row with a state, a choice, a pair, a word."""
    if (found := tones.of(value)) is not None:
        return found
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return str(value[0]), str(value[1])
    label = getattr(value, "label", value)
    return str("" if label is None else label), str(getattr(value, "tone", "neutral"))


@register.simple_tag
def badge(value: Any, tone: str = "", label: str = "", href: str = "") -> SafeString:
    """Shape, word and tone of a state: `{% badge server %}`, `{% badge "Ready" "good" %}`."""
    found_label, found_tone = _words(value)
    tone = tone or found_tone
    if tone not in TONES:
        raise ValueError(f"No such tone: {tone}")
    words = label or found_label
    if href:
        return format_html('<a class="badge" data-tone="{}" href="{}">{}</a>', tone, href, words)
    return format_html('<span class="badge" data-tone="{}">{}</span>', tone, words)


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """One drawing of the closed list in gpucloud.icons; an unknown name is a bug and says so."""
    return mark_safe(icons.svg(name, label))


def absolute(moment: datetime) -> str:
    return timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S %Z")


@register.simple_tag
def ago(moment: datetime | None, none: str = "never") -> SafeString:
    """A relative time that the browser keeps counting, with the absolute one in its title."""
    if moment is None:
        return format_html('<span class="none">{}</span>', none)
    words = durations.ago((timezone.now() - moment).total_seconds())
    return format_html(
        '<time data-ago datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        absolute(moment),
        words,
    )


@register.simple_tag
def at(moment: datetime | None, form: str = "%H:%M:%S", none: str = "–") -> SafeString:
    """A clock time in the reader's zone, with date and zone in its title."""
    if moment is None:
        return format_html('<span class="none">{}</span>', none)
    words = timezone.localtime(moment).strftime(form)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), absolute(moment), words
    )


@register.simple_tag
def duration(value: timedelta | float | datetime | None, until: datetime | None = None) -> str:
    """A length of time to two units; given a moment, the time since then (or until `until`)."""
    if isinstance(value, datetime):
        value = (until or timezone.now()) - value
    return durations.words(value)


@register.simple_tag(takes_context=True)
def query(context: Context, **changes: Any) -> str:
    """The page's query string with some values set; None or "" removes one. Goes into an href."""
    params = context["request"].GET.copy()
    for key, value in changes.items():
        if value is None or value == "":
            params.pop(key, None)
        elif isinstance(value, (list, tuple)):
            params.setlist(key, [str(one) for one in value])
        else:
            params[key] = str(value)
    return f"?{params.urlencode()}" if params else "?"


def short(text: str, keep: int = 20) -> str:
    """The ends of a long identifier; people compare the first and the last characters."""
    return text if len(text) <= keep + 4 else f"{text[: keep - 8]}…{text[-7:]}"


@register.simple_tag
def mono(value: Any, keep: int = 0) -> SafeString:
    """An id, MAC, address or version in mono; `keep` shortens it in the middle."""
    text = str("" if value is None else value)
    if not text:
        return mark_safe('<span class="none">–</span>')
    if keep and short(text, keep) != text:
        return format_html('<span class="id" title="{}">{}</span>', text, short(text, keep))
    return format_html('<span class="id">{}</span>', text)


@register.simple_tag
def copyable(value: Any, keep: int = 0, label: str = "") -> SafeString:
    """Like mono, with a button that copies the full value."""
    text = str("" if value is None else value)
    if not text:
        return mark_safe('<span class="none">–</span>')
    return format_html(
        '<span class="id" title="{}">{} <button class="icon-button" type="button" data-copy="{}" '
        'aria-label="{}">{}</button></span>',
        text,
        short(text, keep) if keep else text,
        text,
        label or f"Copy {text}",
        mark_safe(icons.svg("copy")),
    )


@register.simple_tag
def verdict(value: Any, yes: str = "", no: str = "") -> SafeString:
    """One checked predicate: True, False or None (not checked), or a (words, tone) pair."""
    if isinstance(value, (tuple, list)):
        words, tone = str(value[0]), str(value[1])
    else:
        words = (no if value is False else yes) or {True: "Yes", False: "No"}.get(
            value, "Not checked"
        )
        tone = {True: "good", False: "bad"}.get(value, "neutral")
    drawing = {"good": "check", "bad": "close", "warn": "warn", "busy": "clock"}.get(tone, "dash")
    return format_html(
        '<span class="verdict" data-tone="{}">{}{}</span>',
        tone,
        mark_safe(icons.svg(drawing)),
        words,
    )


@register.simple_tag
def labels(pairs: dict[str, Any] | Sequence[str] | None) -> SafeString:
    """Kubernetes-style labels, each in its own code element."""
    if not pairs:
        return mark_safe('<span class="none">–</span>')
    items = [f"{k}={v}" for k, v in sorted(pairs.items())] if isinstance(pairs, dict) else pairs
    return format_html_join(" ", "<code>{}</code>", ((item,) for item in items))


@register.simple_block_tag
def panel(
    content: str,
    title: str,
    id: str = "",
    note: str = "",
    badge: Any = None,
    link: str = "",
    href: str = "",
    rev: Any = "",
    body: bool = False,
    footer: str = "",
) -> SafeString:
    """A bordered surface with a head: {% panel "Claim" id="claim-…-facts" rev=claim.rev body=True
    %}…{% endpanel %}
    """
    tail = format_html("<small>{}</small>", note) if note else SafeString("")
    if badge is not None:
        tail += format_html('<span class="badge" data-tone="{1}">{0}</span>', *_words(badge))
    if link:
        tail += format_html('<a href="{}">{}</a>', href, link)
    return format_html(
        '<section class="panel"{}{}><header><h2>{}</h2>{}</header>{}{}{}{}</section>',
        format_html(' id="{}"', id) if id else "",
        format_html(' data-rev="{}"', rev) if rev != "" else "",
        title,
        tail,
        mark_safe('<div class="body">') if body else "",
        content,
        mark_safe("</div>") if body else "",
        format_html("<footer>{}</footer>", footer) if footer else "",
    )


@register.inclusion_tag("ui/sidebar.html", takes_context=True)
def sidebar(context: Context) -> dict[str, Any]:
    """The side bar for the signed-in person, with the current section marked."""
    request: HttpRequest = context["request"]
    return {
        "groups": navigation.groups_for(request.user, request.path),
        "request": request,
        "user": request.user,
        "who": navigation.who(request.user),
        "csrf_token": context.get("csrf_token"),
    }


@register.simple_tag
def clock() -> SafeString:
    """The server's clock in the reader's zone; console.js keeps it running."""
    now = timezone.localtime()
    return format_html(
        '<time data-clock datetime="{}" data-zone="{}" title="{}">{}</time>',
        now.isoformat(),
        timezone.get_current_timezone_name(),
        "Clock of the server, in your zone",
        now.strftime("%H:%M:%S %Z"),
    )


@register.simple_tag
def live_socket(topics: Sequence[str]) -> SafeString:
    """The page's one socket, as an element; put it where the rows it names are swapped."""
    if not topics:
        return SafeString("")
    address = f"/live/?{urlencode([('t', topic) for topic in topics])}"
    return format_html('<div class="said" id="live" hx-ext="ws" ws-connect="{}"></div>', address)


@register.filter
def words(text: str) -> list[str]:
    """A literal list in a template: `"auto,light,dark"|words`."""
    return text.split(",")


@register.filter
def message_tone(level: str) -> str:
    """The tone of a Django message level."""
    return {"success": "good", "info": "neutral", "warning": "warn", "error": "bad"}.get(
        level, "neutral"
    )


@register.filter
def pips_sentence(steps: Sequence[Any]) -> str:
    """Where a row of steps stands, in words: "Step 4 of 9, Install"."""
    for number, step in enumerate(steps, 1):
        if step.state in ("running", "failed"):
            before = "Failed at step" if step.state == "failed" else "Step"
            return f"{before} {number} of {len(steps)}, {step.name}"
    done = sum(step.state in ("done", "skipped") for step in steps)
    return f"{done} of {len(steps)} steps done"


@register.filter
def reached_by(lanes_index: int, shared: Sequence[Any]) -> bool:
    """Whether the lane with this 1-based number lies under a shared endpoint."""
    return any(one.at <= lanes_index < one.at + one.span for one in shared)


@register.filter
def is_tick(field: BoundField) -> bool:
    return isinstance(field.field.widget, CheckboxInput)


@register.filter
def is_choices(field: BoundField) -> bool:
    return isinstance(field.field.widget, (RadioSelect, CheckboxSelectMultiple))


@register.filter
def dressed(field: BoundField) -> SafeString:
    """The field's widget, tied to its errors for assistive technology (Django ties the hint by
    itself).
    """
    attrs: dict[str, Any] = {}
    if field.errors:
        hint = f"{field.auto_id}_helptext " if field.help_text else ""
        attrs = {"aria-invalid": "true", "aria-describedby": f"{hint}{field.auto_id}_errors"}
    return field.as_widget(attrs=attrs)


@register.filter
def is_pair(value: Any) -> bool:
    """Whether a cell is a (words, tone) verdict."""
    return isinstance(value, tuple)


@register.filter
def pattern(text: str) -> str:
    """The text as a regular expression for an input's `pattern`."""
    return re.escape(text)


@register.filter
def pair(text: str) -> tuple[str, str]:
    """A literal state in a template: `"Ready:good"|pair`."""
    label, _, tone = text.rpartition(":")
    return label, tone


@register.simple_tag
def event_words(event: Event, staff: bool) -> str:
    """What happened, as this reader may be told."""
    return history.words(event, staff)
