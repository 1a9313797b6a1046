"""Selection, pure: candidates and predicates in, the chosen server and the explanation out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """One server as selection sees it, read in one go."""

    uid: str
    name: str
    labels: dict[str, str]
    state: str
    clean: bool
    maintenance: bool
    quarantined: bool
    health: str
    held_by: str
    active_operation: bool
    cabled: bool
    refused: str
    rack: str
    provisioning_address: bool
    gpu_count: int
    gpu_models: tuple[str, ...]
    idle_seconds: float = 0.0


@dataclass(frozen=True)
class Check:
    name: str
    passed: bool
    text: str


@dataclass(frozen=True)
class Considered:
    name: str
    uid: str
    result: str
    checks: tuple[Check, ...]
    score: int | None


@dataclass(frozen=True)
class Wanted:
    """What the node type asks: labels, and the SKU {"gpu_model", "gpu_count"}."""

    selector: dict[str, str] = field(default_factory=dict)
    sku: dict[str, Any] = field(default_factory=dict)
    avoid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Selection:
    """`chosen` is the uid or '';

    `considered` holds every server of the provider with each check's verdict.
    """

    chosen: str
    considered: tuple[Considered, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def checks_of(one: Candidate, wanted: Wanted) -> tuple[Check, ...]:
    """Every predicate with a verdict, in the order in which an operator asks them."""
    label = all(one.labels.get(k) == v for k, v in wanted.selector.items())
    selector = ", ".join(f"{k}={v}" for k, v in wanted.selector.items()) or "any"
    free = one.state == "available" and not one.held_by and not one.active_operation
    avoided = tuple(
        Check("Not avoided", False, "Avoided") for name in wanted.avoid if name == one.name
    )
    return (
        Check(f"Labels {selector}", label, "Match" if label else "No match"),
        Check(
            "Free",
            free,
            "Free"
            if free
            else (f"Held by {one.held_by}" if one.held_by else one.state.capitalize()),
        ),
        Check(
            "In service",
            not (one.maintenance or one.quarantined),
            "Quarantined"
            if one.quarantined
            else "Maintenance"
            if one.maintenance
            else "In service",
        ),
        Check("Wiped", one.clean, "Clean" if one.clean else "Not wiped since its last tenant"),
        Check(
            "Cabled",
            one.cabled,
            "All ports" if one.cabled else "A port of the NIC plan has no cable",
        ),
        Check(
            "Address",
            one.provisioning_address,
            "Has one" if one.provisioning_address else "No provisioning address",
        ),
        Check("Engine", not one.refused, one.refused or "Ready"),
        Check(
            "Healthy", one.health.lower() not in ("critical", "warning"), one.health or "Not read"
        ),
        *avoided,
    )


def score_of(one: Candidate, wanted: Wanted) -> int:
    """0 to 100: less for what is not known, more for the server that has rested longest."""
    score = 90
    if not one.health:
        score -= 10
    if wanted.sku.get("gpu_count") is not None and one.gpu_count != wanted.sku["gpu_count"]:
        score -= 30
    return score + min(10, int(one.idle_seconds // 3600))


def select(candidates: list[Candidate], wanted: Wanted) -> Selection:
    """Choose the highest score among those that pass every check;

    equal scores by name, so that it is repeatable.
    """
    considered: list[tuple[Candidate, tuple[Check, ...], int | None]] = []
    for one in candidates:
        checks = checks_of(one, wanted)
        passed = all(check.passed for check in checks)
        considered.append((one, checks, score_of(one, wanted) if passed else None))
    fits = [row for row in considered if row[2] is not None]
    best = min(fits, key=lambda row: (-(row[2] or 0), row[0].name), default=None)
    rows = sorted(
        considered,
        key=lambda row: (
            row is not best,
            row[2] is None,
            -(row[2] or 0),
            not row[1][0].passed,
            row[0].name,
        ),
    )
    return Selection(
        best[0].uid if best else "",
        tuple(
            Considered(
                one.name,
                one.uid,
                "Chosen" if best and one is best[0] else "Fits" if score is not None else "Refused",
                checks,
                score,
            )
            for one, checks, score in rows
        ),
    )
