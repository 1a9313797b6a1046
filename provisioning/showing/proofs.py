"""What was read while a claim moved: ports before and after, drives wiped, GPUs counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from gpucloud import ui
from gpucloud.models import Step
from inventory.models import WipeRecord
from network.models import Segment
from provisioning.models import NodeClaim

Words = tuple[str, ui.Tone]
NONE: Final = "–"


class Vlans:
    """VLANs in words, and whether one is where a port should be."""

    def __init__(self, claim: NodeClaim) -> None:
        segments = Segment.objects.exclude(state="gone")
        cluster = claim.cluster
        if cluster is not None and cluster.segment is not None:
            segments = segments.filter(fabric=cluster.segment.fabric_id)
        self.rows = {s.vlan: s for s in segments.only("vlan", "name", "role")}
        self.tenant = cluster.segment.vlan if cluster and cluster.segment else None

    def words(self, port: dict[str, Any] | None, *roles: str, named: bool = True) -> Words | str:
        """A port as it was read; good only when its VLAN is of one of the roles wanted."""
        if port is None:
            return NONE
        vlan = port.get("vlan")
        row = self.rows.get(vlan) if isinstance(vlan, int) else None
        name = f", {row.name}" if row and named else ""
        tagged = f", tagged {', '.join(map(str, port['tagged']))}" if port.get("tagged") else ""
        theirs = "tenant" in roles and vlan == self.tenant
        fits = theirs or (row is not None and row.role != "tenant" and row.role in roles)
        tone: ui.Tone = "good" if fits and not tagged else "bad"
        told = f"VLAN {vlan}" if named else str(vlan)
        return (f"{told}{name}{tagged}" if vlan else "No VLAN"), tone

    def wanted(self, *roles: str) -> str:
        """Where a port is to go next, in order: "→ 4000 → 100"."""
        found = []
        for role in roles:
            vlan = self.tenant if role == "tenant" else None
            if role != "tenant":
                vlan = next((s.vlan for s in self.rows.values() if s.role == role), None)
            found.append(str(vlan) if vlan else role)
        return "→ " + " → ".join(found)


def of_step(step: Step, vlans: Vlans) -> list[ui.Proof]:
    """The step's evidence as tables; what has none says so by its sentence alone."""
    evidence = step.evidence
    rows: list[tuple[Any, ...]]
    if step.name in ("move", "return"):
        return _moved(step, vlans)
    if step.name == "wipe" and evidence.get("drives"):
        return [drives("Wipe per drive", evidence["drives"])]
    found = []
    if evidence.get("ports"):
        roles = ("tenant",) if step.name == "verify" else ("provisioning",)
        rows = [(port_name(p), vlans.words(p, *roles)) for p in evidence["ports"]]
        found.append(ui.Proof("Ports as read in this step", ("Port and NIC role", "Read"), rows))
    if step.name == "verify" and "gpus" in evidence:
        rows = [
            ("GPUs of the last inspection", str(evidence["gpus"])),
            ("Power", str(evidence.get("power", NONE))),
            ("Isolation", str(evidence.get("isolation", NONE))),
        ]
        found.append(ui.Proof("Compared in Verify", ("What", "Found"), rows))
    if step.name in ("boot", "join") and evidence.get("node"):
        rows = [("Node", str(evidence["node"]))]
        if evidence.get("system_uuid"):
            rows.append(("System UUID", str(evidence["system_uuid"])))
        found.append(ui.Proof("The node as its API tells", ("What", "Found"), rows))
    if step.name == "check" and evidence.get("wipe"):
        rows = [("Wipe record", str(evidence["wipe"])), ("Signature", "Unsigned")]
        found.append(ui.Proof("Record of the wipe", ("What", "Found"), rows))
    return found


def _moved(step: Step, vlans: Vlans) -> list[ui.Proof]:
    evidence, target = step.evidence, "tenant" if step.name == "move" else "provisioning"
    source = "provisioning" if step.name == "move" else "tenant"
    stages = [by_port(evidence.get(key)) for key in ("before", "in_quarantine", "after")]
    ports = list(dict.fromkeys(name for stage in stages for name in stage))
    if not ports:
        return []
    before, quarantined, after = stages
    rows = [
        (
            name,
            vlans.words(before.get(name), source),
            vlans.words(quarantined.get(name), "quarantine"),
            vlans.words(after.get(name), target) if name in after else vlans.wanted(target),
        )
        for name in ports
    ]
    heads = ("Port and NIC role", "Before", "In quarantine", "After")
    return [ui.Proof("Ports as read back at the switch", heads, rows)]


def port_name(port: dict[str, Any]) -> tuple[str, str]:
    """Switch and port, and the NIC roles of what is plugged in."""
    return f"{port.get('switch')} {port.get('port')}", ", ".join(port.get("roles") or ())


def by_port(
    ports: Iterable[dict[str, Any]] | None,
) -> dict[tuple[str, str], dict[str, Any]]:
    return {port_name(port): port for port in ports or ()}


def drives(caption: str, rows: list[dict[str, Any]]) -> ui.Proof:
    """Each drive: how it was wiped, what was read back, whether that proves it blank."""
    return ui.Proof(caption, ("Drive", "Method", "Read back", "Result"), [_drive(d) for d in rows])


def _drive(drive: dict[str, Any]) -> tuple[Any, ...]:
    seen = drive.get("readback") or {}
    samples, left = seen.get("samples", 0), seen.get("nonblank", 0)
    read = f"{samples - left} of {samples} samples blank" if samples else "Not read back"
    good = bool(drive.get("ok")) and bool(samples) and not left
    result: Words = ("Blank", "good") if good else ("Not proved", "bad")
    return str(drive.get("serial", NONE)), str(drive.get("method") or NONE), read, result


def network(claim: NodeClaim, steps: Iterable[Step], vlans: Vlans) -> ui.Proof | None:
    """Every port of the claim: what was read before the move, on the way, and last."""
    stages: dict[str, dict[tuple[str, str], dict[str, Any]]] = {
        "before": {},
        "quarantine": {},
        "after": {},
    }
    home = False
    for step in steps:
        evidence = step.evidence
        if step.name == "install":
            stages["before"].update(by_port(evidence.get("ports")))
        elif step.name == "move":
            stages["before"].update(by_port(evidence.get("before")))
            stages["quarantine"].update(by_port(evidence.get("in_quarantine")))
            stages["after"].update(by_port(evidence.get("after")))
        elif step.name == "verify":
            stages["after"].update(by_port(evidence.get("ports")))
        elif step.name == "return":
            stages["quarantine"].update(by_port(evidence.get("in_quarantine")))
            if evidence.get("after"):
                home = True
                stages["after"].update(by_port(evidence["after"]))
    ports = list(dict.fromkeys(name for stage in stages.values() for name in stage))
    if not ports:
        return None
    goal = "provisioning" if home else "tenant"
    rows = [
        (
            name,
            vlans.words(stages["before"].get(name), "provisioning", named=False),
            vlans.words(stages["quarantine"].get(name), "quarantine", named=False)
            if name in stages["quarantine"]
            else vlans.wanted("quarantine"),
            vlans.words(stages["after"].get(name), goal, named=False)
            if name in stages["after"]
            else vlans.wanted("tenant"),
        )
        for name in ports
    ]
    heads = ("Port and role", "Before", "Quarantine", "After")
    return ui.Proof(f"Switch ports of {claim}", heads, rows)


def for_tenant(claim: NodeClaim, steps: Iterable[Step]) -> ui.Proof:
    """What is proved about a claim, in answers without our inside."""
    by_name = {step.name: step for step in steps}
    segment = claim.cluster.segment if claim.cluster else None
    rows = [_wiped(claim), _moved_off(by_name.get("move")), _links(by_name, segment)]
    verify = by_name.get("verify")
    wanted = claim.node_type.sku.get("gpu_count")
    if wanted is not None:
        found = verify.evidence.get("gpus") if verify is not None else None
        rows.append(
            (
                f"Has it the {wanted} GPUs of the node type?",
                "Yes",
                _answer(found, found == wanted),
                "",
            )
        )
    told = verify.evidence.get("isolation") if verify is not None else None
    answer: Words = (str(told).capitalize(), "neutral") if told else ("Not yet", "neutral")
    rows.append(("Does anyone else reach it?", "No", answer, ""))
    heads = ("Question", "Wanted", "Found", "Record")
    return ui.Proof("What is proved about this claim", heads, rows, ids=False)


def _answer(told: Any, good: bool) -> Words:
    if told is None:
        return "Not yet", "neutral"
    return ("Yes", "good") if good else ("No", "bad")


def _wiped(claim: NodeClaim) -> tuple[Any, ...]:
    question = "Was every drive wiped before you?"
    if claim.server is None or claim.tenancy is None:
        return question, "Yes", ("Not yet", "neutral"), ""
    record = WipeRecord.objects.filter(
        server=claim.server, tenancy=claim.tenancy - 1, passed=True
    ).first()
    if record is None:
        return question, "Yes", ("No record", "bad"), ""
    if record.kind == WipeRecord.Kind.DECLARED:
        return question, "Yes", ("Declared blank, new to us", "neutral"), f"{record.uid}, unsigned"
    note = f"{record.uid}, {'signed' if record.signature else 'unsigned'}"
    return question, "Yes", ("Yes", "good"), note


def _moved_off(move: Step | None) -> tuple[Any, ...]:
    # Move goes on only while the power is read off, and is done when all was read back.
    done = move is not None and move.state == "done"
    return "Was it off the whole time it moved?", "Yes", _answer(done or None, done), ""


def _links(by_name: dict[str, Step], segment: Segment | None) -> tuple[Any, ...]:
    question = f"Are all its links in {segment or 'your segment'} and nowhere else?"
    step = by_name.get("verify") or by_name.get("move")
    ports = (step.evidence.get("ports") or step.evidence.get("after")) if step else None
    if not ports and (move := by_name.get("move")) is not None:
        ports = move.evidence.get("after")
    if not ports or segment is None:
        return question, "Yes", ("Not yet", "neutral"), ""
    good = all(p.get("vlan") == segment.vlan and not p.get("tagged") for p in ports)
    return question, "Yes", _answer(ports, good), ""
