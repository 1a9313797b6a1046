"""How servers are drawn: their words, power, hardware, ports, timeline and history as plain values.

Pages and live fragments show the same, so both take it from here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Prefetch, Q, QuerySet
from django.utils import timezone

from gpucloud import timeline, tones, ui
from gpucloud.models import Event, Step
from gpucloud.policy import visible
from gpucloud.reasons import reason
from inventory.models import POWER_GOOD_FOR, Gpu, Interface, Server
from network.models import Attachment
from provisioning.models import NodeClaim, Operation

HISTORY_SHOWN: Final = 12
WIPES_SHOWN: Final = 10
TENANCY: Final = F("tenancy")


def fleet(user: Any) -> QuerySet[Server]:
    """The servers that a person may see, prepared to be drawn."""
    return prepared(visible(user, Server.objects.all()))


def prepared(rows: QuerySet[Server]) -> QuerySet[Server]:
    """These servers with what one table row needs, in a fixed number of queries."""
    claims = NodeClaim.objects.live().select_related("tenant", "cluster__tenant", "node_type")
    attachments = Attachment.objects.exclude(state="gone").select_related("segment__fabric")
    # A failed operation speaks for its claim until that is released.
    operations = Operation.objects.filter(
        Q(state="active") | Q(state="failed", claim__isnull=False) & ~Q(claim__state="gone")
    )
    return rows.select_related("rack__site", "bmc").prefetch_related(
        Prefetch("claims", claims, to_attr="live_claims"),
        Prefetch("operations", operations, to_attr="speaking"),
        Prefetch("gpus", Gpu.objects.only("server_id", "model", "memory_bytes")),
        Prefetch("interfaces", Interface.objects.select_related("link")),
        Prefetch("interfaces__attachments", attachments, to_attr="wanted"),
    )


@dataclass(frozen=True)
class Summary:
    """One server in a line."""

    server: Server
    claim: NodeClaim | None
    operation: Operation | None
    step: Step | None

    @property
    def words(self) -> tuple[str, str]:
        """State and tone as rows, heads and titles say them; a held one has its claim's."""
        server, claim = self.server, self.claim
        if claim is not None and claim.state in ("provisioning", "releasing", "failed"):
            return self._claimed(claim)
        if claim is not None and claim.state == "ready":
            return "Provisioned", "good"
        if self.operation and self.step and server.state in ("inspecting", "cleaning"):
            return self._with_percent(server.get_state_display()), "busy"
        return server.get_state_display(), tones.tone(Server, server.state)

    def _claimed(self, claim: NodeClaim) -> tuple[str, str]:
        name = self.step.name.capitalize() if self.step else claim.get_state_display()
        if claim.state == "failed" or (self.operation and self.operation.state == "failed"):
            return (f"{name} failed" if self.step else "Failed"), "bad"
        return self._with_percent(name), "busy"

    def _with_percent(self, name: str) -> str:
        percent = self.step.percent if self.step else None
        return name if percent is None else f"{name} {percent} %"

    @property
    def flags(self) -> list[tuple[str, str, str]]:
        """What stands beside the state: word, tone, why."""
        server, found = self.server, []
        if server.quarantined:
            found.append(("Quarantined", "bad", server.quarantine_reason))
        if server.maintenance:
            found.append(("Maintenance", "warn", server.maintenance_reason))
        if server.health.lower() not in ("", "ok"):
            found.append((f"Health {server.health}", "warn", "As the BMC tells it"))
        if server.power_problem:
            found.append(("BMC silent", "warn", server.power_problem))
        return found

    @property
    def hardware(self) -> str:
        return hardware(self.server)

    @property
    def rack(self) -> str:
        server = self.server
        if server.rack is None:
            return ""
        return f"{server.rack} U{server.slot:02d}" if server.slot else str(server.rack)

    @property
    def segments(self) -> list[Attachment]:
        """Where its ports are wanted, one line per segment; the tenant's first."""
        rows = {
            row.segment_id: row
            for one in self.server.interfaces.all()
            for row in getattr(one, "wanted", [])
        }
        return sorted(rows.values(), key=lambda row: row.segment.role != "tenant")

    @property
    def seen_vlan(self) -> int | None:
        """The VLAN that was read on its first cabled port, for a server nobody attached yet."""
        seen = [one.link.seen_vlan for one in self.server.interfaces.all() if hasattr(one, "link")]
        return next((vlan for vlan in seen if vlan), None)


def summarise(servers: Iterable[Server]) -> list[Server]:
    """Give each server of `fleet` its `summary`; one query for the steps of all."""
    rows = list(servers)
    speaking = {server.pk: _speaker(server) for server in rows}
    uids = [operation.uid for operation in speaking.values() if operation]
    steps = {
        step.owner_uid: step
        for step in Step.objects.filter(kind="operation", owner_uid__in=uids)
        .filter(Q(current=True) | Q(state="failed"))
        .order_by("run", "index")
    }
    for server in rows:
        claim = next(iter(getattr(server, "live_claims", [])), None)
        operation = speaking[server.pk]
        step = steps.get(operation.uid) if operation else None
        server.summary = Summary(server, claim, operation, step)  # type: ignore[attr-defined]
    return rows


def _speaker(server: Server) -> Operation | None:
    rows: list[Operation] = getattr(server, "speaking", [])
    return next((row for row in rows if row.state == "active"), None) or next(iter(rows), None)


def hardware(server: Server) -> str:
    """The GPUs in one word, else the processors, else the model."""
    models = Counter(gpu.model for gpu in server.gpus.all())
    if models:
        return ", ".join(f"{count}× {model}" for model, count in models.items())
    processors = Counter(
        str(one.get("model") or "") for one in (server.facts or {}).get("processors", [])
    )
    processors.pop("", None)
    if processors:
        return ", ".join(f"{count}× {model}" for model, count in processors.items())
    return " ".join(filter(None, (server.vendor, server.model)))


@dataclass(frozen=True)
class Port:
    """One interface: its cable, where it is wanted, and what was read there and when."""

    interface: Interface
    cable: Any
    wanted: Sequence[Attachment]
    verdict: tuple[str, str]

    @property
    def speed(self) -> str:
        """In Gbit/s, "" when nobody told."""
        return f"{self.interface.speed_mbps / 1000:g}" if self.interface.speed_mbps else ""


def whole(user: Any, uid: UUID) -> Server | None:
    """One server with everything its page shows, or None for foreign and absent alike."""
    rows = fleet(user).select_related("connection").prefetch_related("interfaces__link__fabric")
    return next(iter(summarise(rows.filter(uid=uid))), None)


def detail(server: Server) -> dict[str, Any]:
    """What the page of a server from `whole` shows; the same for page and live fragment."""
    summary: Summary = server.summary  # type: ignore[attr-defined]
    operation = latest_operation(server)
    moments, events = history(server)
    return {
        "summary": summary,
        "claim": summary.claim,
        "notices": notices(server),
        "identity": identity(server, summary.claim),
        "power": power_words(server),
        "power_note": power_note(server),
        "ports": ports(server),
        "operation": operation,
        "steps": timeline.shown(latest_steps(operation)),
        "processors": Counter(
            str(one.get("model") or "unnamed") for one in server.facts.get("processors", [])
        ).items(),
        "drives": list(server.drives.all()),
        "wipes": list(server.wipes.all()[:WIPES_SHOWN]),
        "moments": moments,
        "events": events,
    }


def latest_steps(operation: Operation | None) -> list[Step]:
    """The steps of the operation's last run."""
    if operation is None:
        return []
    rows = list(Step.objects.filter(kind="operation", owner_uid=operation.uid))
    last = max((step.run for step in rows), default=0)
    return [step for step in rows if step.run == last]


def ports(server: Server) -> list[Port]:
    return [port_of(one) for one in server.interfaces.all()]


def port_of(one: Interface) -> Port:
    """A port from an interface whose link and live attachments (`wanted`) were fetched."""
    cable = getattr(one, "link", None)
    wanted: list[Attachment] = getattr(one, "wanted", [])
    return Port(one, cable, wanted, verdict(cable, wanted))


def verdict(cable: Any, wanted: Sequence[Attachment]) -> tuple[str, str]:
    """Observed beside wanted, as one word: what was read, and whether that is what we asked."""
    if cable is None:
        return "No cable recorded", "warn"
    if cable.seen_at is None and cable.seen_vlan is None:
        return "Not read", "neutral"
    told = f"VLAN {cable.seen_vlan}" if cable.seen_vlan else "No VLAN"
    if cable.seen_tagged:
        told += f", tagged {', '.join(map(str, cable.seen_tagged))}"
    access = next((row for row in wanted if row.mode == "access"), None)
    if access is None:
        return told, "neutral"
    if access.segment.vlan == cable.seen_vlan:
        return told, "good"
    return told, "busy" if access.state in ("wanted", "applying") else "warn"


def identity(server: Server, claim: NodeClaim | None) -> list[ui.Fact]:
    fact = ui.Fact
    place = " ".join(
        filter(None, (str(server.rack or ""), f"U{server.slot:02d}" if server.slot else ""))
    )
    site = f"{server.rack.site}, " if server.rack else ""
    clean = server.clean_tenancy == server.tenancy
    facts = [
        fact("Model", " ".join(filter(None, (server.vendor, server.model)))),
        fact("Serial", server.serial, copy=bool(server.serial)),
        fact("System UUID", server.system_uuid, copy=bool(server.system_uuid)),
        fact("Location", f"{site}{place}" if place else ""),
    ]
    if claim is not None:
        facts += [
            fact("Claim", claim, str(claim.node_type), href=claim.get_absolute_url()),
            fact("Tenant", claim.tenant, href=claim.tenant.get_absolute_url()),
        ]
        if claim.tenant_address:
            facts.append(
                fact(
                    "Tenant address", claim.tenant_address, "network data of this claim", copy=True
                )
            )
    facts += [
        fact(
            "Provisioning",
            server.provisioning_address,
            "by DHCP, only while in the provisioning segment"
            if server.provisioning_address
            else "",
            copy=bool(server.provisioning_address),
        ),
        fact(
            "Tenancy",
            server.tenancy,
            "wiped or declared blank for this tenancy" if clean else "not wiped since it began",
        ),
    ]
    return facts


def power_words(server: Server) -> tuple[str, str]:
    """Power as far as anybody knows now: an old reading is unknown, and says what it was."""
    now = server.power_now
    if now == "unknown":
        return "Unknown", "warn" if server.power_problem else "neutral"
    return server.get_power_display(), "good" if now == "on" else "neutral"


def power_note(server: Server) -> str:
    if server.power_at is None:
        return "never read"
    if server.power_now == "unknown" and server.power != "unknown":
        minutes = int(POWER_GOOD_FOR.total_seconds() // 60)
        return f"read as {server.power}, longer than {minutes} min ago"
    return ""


def notices(server: Server) -> list[ui.Notice]:
    """What is wrong or held back, each with the reason's cause and next step."""
    found = []
    if server.problem or server.code:
        found.append(_problem(server))
    if server.quarantined:
        found.append(
            ui.Notice(
                f"{server} is quarantined: {server.quarantine_reason}",
                "Nothing selects it until a person lifts the quarantine. What it does now goes on.",
                "bad",
                "shield",
            )
        )
    if server.maintenance:
        until = server.maintenance_until
        end = f" until {timezone.localtime(until):%d %b %H:%M %Z}" if until else ""
        found.append(
            ui.Notice(
                f"{server} is in maintenance{end}: {server.maintenance_reason}",
                "New claims pass it by. What it does now goes on.",
                "warn",
                "calendar",
            )
        )
    if server.power_problem:
        found.append(
            ui.Notice(
                "The power could not be read",
                f"{server.power_problem} Until it answers the power counts as unknown, not as off.",
                "warn",
                "power",
            )
        )
    return found


def _problem(server: Server) -> ui.Notice:
    known = reason(server.code) if server.code else None
    facts = [("Happened", server.problem)] if server.problem else []
    if known:
        facts += [("Means", known.sentence), ("Next", known.next)]
    return ui.Notice(f"{server} is out of service", "", "bad", "warn", server.code, facts)


def latest_operation(server: Server) -> Operation | None:
    """What runs on the server, or what ran last."""
    rows = server.operations.select_related("claim__tenant")
    return rows.filter(state="active").first() or rows.first()


def history(server: Server) -> tuple[list[ui.Moment], int]:
    """The newest events of the server, and how many there are."""
    rows = Event.objects.filter(object_uid=server.uid)
    newest = rows.order_by("-id")[:HISTORY_SHOWN]
    return [moment(event) for event in newest], rows.count()


def moment(event: Event) -> ui.Moment:
    tone: ui.Tone = "bad" if event.code else _VERB_TONES.get(event.verb, "neutral")
    return ui.Moment(event.message, event.code, event.at, tone, event.actor)


_VERB_TONES: Final[dict[str, ui.Tone]] = {
    "offer": "good",
    "inspect": "busy",
    "clean": "busy",
    "hold": "busy",
    "maintenance": "warn",
    "quarantine": "warn",
    "alarm": "warn",
}


def capacity(user: Any) -> list[ui.Figure]:
    """Four numbers over the whole fleet, counted from rows."""
    rows = visible(user, Server.objects.exclude(state=Server.State.RETIRED))
    total = rows.count()
    usable = rows.usable().count()
    held = rows.filter(state=Server.State.HELD).count()
    busy = rows.filter(state__in=("inspecting", "cleaning")).count()
    failed = rows.filter(state=Server.State.FAILED).count()
    aside = rows.filter(Q(maintenance=True) | Q(quarantined=True)).count()
    gpus = Gpu.objects.filter(server__in=rows)
    taken = gpus.filter(server__state=Server.State.HELD).count()
    return [
        ui.Figure("Available", usable, f"of {total}", "clean, in service, parked off"),
        ui.Figure("Held by claims", held, f"of {total}", f"{busy} being inspected or cleaned"),
        ui.Figure("GPUs held", taken, f"of {gpus.count()}", "as of the last inspection"),
        ui.Figure(
            "Out of service",
            failed + aside,
            "",
            f"{failed} failed, {aside} in maintenance or quarantine",
        ),
    ]
