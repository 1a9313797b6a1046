"""The gallery: every component in its states, for those who build pages."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from gpucloud import ui
from gpucloud.gantt import Gantt, Span
from gpucloud.icons import ICONS
from gpucloud.listing import Column, Filter, Listing
from gpucloud.models import User
from gpucloud.navigation import is_staff


class SampleForm(forms.Form):
    name = forms.SlugField(max_length=63, help_text="Becomes the namespace in the host cluster.")
    segment = forms.ChoiceField(
        label="Netris server cluster",
        choices=[("rack", "rack · VLAN 100 · 192.168.100.0/24"), ("", "A new one")],
        help_text="The control plane and all nodes will be part of this server cluster.",
    )
    node_type = forms.ChoiceField(
        label="GPU nodes",
        choices=[("metal3.gpu-server", "metal3.gpu-server"), ("metal3.gpu-b", "metal3.gpu-b")],
        widget=forms.RadioSelect,
        help_text="The shape that the pool orders.",
    )
    quantity = forms.IntegerField(min_value=0, max_value=4, label="GPU nodes at most")
    notes = forms.CharField(widget=forms.Textarea(attrs={"rows": 2}), required=False)
    wipe = forms.BooleanField(
        label="Wipe on release", required=False, help_text="Always done here."
    )


COLUMNS = [
    Column("name", "Name", ("username",)),
    Column("role", "Role", ("platform_role", "username")),
    Column("seen", "Last sign-in", ("last_login",), number=True),
]
FILTERS = [
    Filter("role", "Role", User.PlatformRole.choices, "platform_role"),
    Filter("theme", "Theme", User.Theme.choices),
]


@login_required
@require_GET
def gallery(request: HttpRequest) -> HttpResponse:
    """Every component in its states, to look at beside the pages that use them; staff only."""
    if not is_staff(request.user):
        raise Http404
    form = SampleForm(
        {
            "name": "Tenant one",
            "segment": "rack",
            "quantity": 9,
            "wipe": "on",
            "node_type": "metal3.gpu-server",
        }
    )
    form.is_valid()
    if "toast" in request.GET:
        messages.success(request, "one-cqhsw is ready")
        messages.error(request, "Inspection failed for bare-metal-8")
    return render(
        request,
        "ui/gallery.html",
        {"form": form, "icons": sorted(ICONS), **_steps(), **_shapes(), **_listings(request.GET)},
    )


def _listings(params: QueryDict) -> dict[str, Any]:
    def made(given: QueryDict) -> Listing[User]:
        return Listing(
            given,
            User.objects.all(),
            name="users",
            search=("username",),
            columns=COLUMNS,
            filters=FILTERS,
        )

    return {
        "listing": made(params),
        "nothing": made(QueryDict("q=nobody-of-that-name&role=support")),
    }


def _s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def _steps() -> dict[str, Any]:
    now = timezone.now()
    return {
        "timeline": _timeline(now),
        "failed": _failed_timeline(now),
        "gantt": Gantt.of(_spans(now), now),
        "now": now,
        "stopped": Gantt.of(_stopped_spans(now), now, ended=now - _s(230)),
        "an_hour_ago": now - _s(3700),
    }


def _timeline(now: datetime) -> list[ui.TimelineStep]:
    step = ui.TimelineStep
    log = (
        "06:06:09 power on accepted, one-time boot set to network\n"
        "06:06:51 DHCP offer 10.10.0.32/22, gateway 10.10.0.1, vlan 10\n"
        "06:07:42 writing image, checksum sha256:5be1…c07d"
    )
    return [
        step(
            "Select", "done", "bare-metal-2 chosen from 3 that fit; 14 considered.", 1, took=_s(1.2)
        ),
        step("Configure", "done", "User data and network data written.", 1, took=_s(2)),
        step(
            "Setup",
            "done",
            "Image and secrets attached, still powered off.",
            2,
            took=_s(5),
            usual="p50 4 s, p90 9 s",
            log="06:06:05 patch spec.image, answer: 409 conflict",
        ),
        step(
            "Install",
            "running",
            "Ironic’s ramdisk is writing ubuntu2404-20260926 to nvme0n1.",
            1,
            took=_s(172),
            usual="p50 3 min 44 s, p90 4 min 24 s",
            percent=61,
            percent_label="1.9 of 3.1 GiB",
            log=log,
            log_title="conductor and BMC",
        ),
        step(
            "Stop", "planned", "Power held off and read back at the BMC.", expected_at=now + _s(52)
        ),
        step("Move", "planned", "Two ports VLAN 10 → 4000 → 100, read back after each."),
        step("Boot", "planned"),
        step("Join", "planned"),
        step("Verify", "planned"),
    ]


def _failed_timeline(now: datetime) -> list[ui.TimelineStep]:
    step = ui.TimelineStep
    tries = [
        ui.Attempt(now - _s(400), "No offer in 120 s", "bad", _s(120)),
        ui.Attempt(now - _s(200), "No offer in 120 s", "bad", _s(120)),
    ]
    return [
        step("Setup", "done", "Image and secrets attached.", 1, took=_s(5)),
        step(
            "Install",
            "failed",
            "The server asked for an address in VLAN 10 and no offer came.",
            3,
            3,
            took=_s(417),
            reason="NO_DHCP_OFFER",
            attempts=tries,
        ),
        step("Stop", "skipped", "Not needed."),
        step("Move", "planned", "Not started."),
    ]


def _spans(now: datetime) -> list[Span]:
    return [
        Span("Select", [(now - _s(178), now - _s(177), "done")]),
        Span("Configure", [(now - _s(177), now - _s(175), "done")]),
        Span("Setup", [(now - _s(175), now - _s(170), "done")]),
        Span("Install", [(now - _s(170), None, "running")], _s(224), _s(264)),
        Span("Stop", [], _s(6), _s(14)),
        Span("Move", [], _s(14), _s(31)),
        Span("Boot", [], _s(38), _s(64)),
        Span("Join", [], _s(17), _s(40)),
        Span("Verify", [], _s(15), _s(34)),
    ]


def _stopped_spans(now: datetime) -> list[Span]:
    return [
        Span("Setup", [(now - _s(500), now - _s(495), "done")]),
        Span(
            "Install",
            [(now - _s(495), now - _s(375), "tried"), (now - _s(350), now - _s(230), "failed")],
        ),
        Span("Stop", []),
    ]


def _shapes() -> dict[str, Any]:
    return {
        **_numbers(),
        **_lists(),
        **_controls(),
        "notices": _notices(),
        "lanes": _lanes(),
        "shared": [
            ui.SharedEndpoint("knode-1", 3, 2, ["in rack and tenant1", "one trunk, no route"])
        ],
    }


def _numbers() -> dict[str, Any]:
    part = ui.Part
    fact = ui.Fact
    return {
        "facts": [
            fact("Cluster", "one", href="/clusters/default/one/"),
            fact("State", "", badge=("Ready", "good")),
            fact("Address now", "10.10.0.32", "provisioning, by DHCP, until Stop", copy=True),
            fact("UID", "5f1c7e0a-41d2-4c6b-9a53-7d20e8b6cf45", copy=True),
            fact("Image", None),
        ],
        "figures": [
            ui.Figure("GPUs claimed", 104, "of 176", "59 %, up 8 since yesterday"),
            ui.Figure("Claims in flight", 4, "", "Next ready at 06:10:32"),
            ui.Figure("Time to GPU node", "5 min 22 s", "", "p90 6 min 41 s, 38 claims"),
            ui.Figure("Failed claims, 7 days", 2, "of 38", "Both NO_DHCP_OFFER"),
        ],
        "meters": [
            ui.Meter(
                [part("claimed", 8), part("available", 2), part("out", 3, "out of service")], 14
            ),
            ui.Meter([part("claimed", 5), part("available", 1), part("standby", 1)], 14),
            ui.Meter(
                [
                    part("claimed", 8, "in use", True),
                    part("planned", 24, "", True),
                    part("free", 8, "left", True),
                ]
            ),
        ],
    }


def _lists() -> dict[str, Any]:
    return {
        "queue": [
            ui.QueueItem(
                "tenant2-vz8fk got no address while network booting",
                "#",
                "bare-metal-6 waits in Install, 3 of 3 attempts used.",
                "NO_DHCP_OFFER",
                "11 min, p95 is 4 min 40 s",
                "bad",
                ui.Link("Restore and retry", "#"),
            ),
            ui.QueueItem(
                "leaf-a01 swp14 is not where we put it",
                "#",
                "Wanted VLAN 102, observed VLAN 199. Isolation holds.",
                "NET_PORT_DRIFT",
                "9 min",
                "warn",
                ui.Link("Reapply port", "#"),
            ),
        ],
        "moments": [
            ui.Moment(
                "Ready",
                "claim one-cqhsw, 5 min 31 s",
                timezone.now() - timedelta(minutes=4),
                "good",
            ),
            ui.Moment(
                "Moved", "Provisioning → Quarantine → rack, read back after each", None, "busy"
            ),
            ui.Moment("Enrolled", "", timezone.now() - timedelta(days=9), "neutral", "admin"),
        ],
    }


def _controls() -> dict[str, Any]:
    return {
        "sequence": [
            {"name": name, "state": state, "note": note}
            for name, state, note in (
                ("Network", "done", "8 s, read back"),
                ("Scheduling control plane", "done", "2 s"),
                ("Deploying control plane", "running", "9 s"),
                ("Connecting to platform", "planned", ""),
            )
        ],
        "tabs": [
            {"label": "Summary", "href": "/ui/"},
            {"label": "Network", "href": "#", "count": 3},
        ],
        "bulk": [
            {"name": "inspect", "label": "Inspect again", "icon": "refresh"},
            {"name": "retire", "label": "Take out of service…", "danger": True},
        ],
        "confirm_items": [
            {"name": "dgx-04", "note": "2 pods wait for a server"},
            {"name": "bare-metal-6", "note": "locked by a repair case", "kept": True},
        ],
        "yaml": "privateNodes:\n  enabled: true\n  autoNodes:\n    - provider: metal3",
    }


def _notices() -> list[ui.Notice]:
    return [
        ui.Notice(
            "bare-metal-6 got no address while network booting",
            "",
            "bad",
            "warn",
            "NO_DHCP_OFFER",
            [
                (
                    "Cause",
                    "Three annotations that the DHCP proxy reads are missing on its BareMetalHost.",
                ),
                ("Effect", "tenant2 stays at 1 of 2 GPU nodes. Its control plane is not affected."),
                ("Next", "Put the three values back and try again. Nothing is wiped."),
            ],
            [
                ui.Link("Restore annotations and retry", "#", "primary"),
                ui.Link("Pick another", "#"),
            ],
        ),
        ui.Notice(
            "leaf-a01 swp14 is in VLAN 199, we put it in VLAN 102",
            "dgx-04 runs on one of two links.",
            "warn",
            "warn",
            "NET_PORT_DRIFT",
            (),
            [ui.Link("Reapply VLAN 102", "#")],
        ),
        ui.Notice(
            "Changed meanwhile",
            "admin changed pool gpu from 2 to 3 nodes. Your entries are kept.",
            "busy",
            "info",
        ),
        ui.Notice(
            "Owned by Git",
            "This template is written by a repository; changes here are put back.",
            "neutral",
            "lock",
        ),
    ]


def _lanes() -> list[ui.Lane]:
    end = ui.Endpoint
    return [
        ui.Lane(
            "Provisioning · VLAN 10",
            ["10.10.0.0/22", "3 can be claimed"],
            "neutral",
            [end("dgx-02", "available, off"), end("bare-metal-1", "Install 48 %", "running")],
        ),
        ui.Lane(
            "Quarantine · VLAN 4000",
            ["reaches nothing"],
            "bad",
            [end("bare-metal-12", "wipe failed 04:03", "failed")],
        ),
        ui.Lane(
            "rack · VLAN 100",
            ["192.168.100.0/24", "tenant default"],
            "busy",
            [
                end("bare-metal-2", "Move at 06:09:59", "planned"),
                end("dgx-05", "in quarantine, off", "moving"),
            ],
        ),
        ui.Lane(
            "tenant1 · VLAN 101",
            ["192.168.101.0/24"],
            "warn",
            [end("dgx-04", "swp14 drifts", "drift")],
        ),
    ]
