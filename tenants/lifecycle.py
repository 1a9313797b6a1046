"""What may happen to a tenant cluster."""

from __future__ import annotations

from gpucloud.lifecycle import Lifecycle, Verb

PHASES = (
    "network",
    "scheduling",
    "creating-namespace",
    "deploying",
    "available",
    "connected",
    "ready",
)
LIVE = ("requested", *PHASES, "changing", "failed")

CLUSTER = Lifecycle(
    kind="cluster",
    verbs={
        **{
            # A retry may go back over phases that were passed: each is entered from any phase
            # before it.
            f"enter {phase}": Verb(
                ("requested", "failed", *PHASES), phase, "{name}: " + phase.replace("-", " ") + "."
            )
            for phase in PHASES
        },
        "change": Verb(("ready",), "changing", "{name} is being changed."),
        "changed": Verb(("changing",), "ready", "{name} is as wanted."),
        "fail": Verb(("requested", *PHASES, "changing", "deleting"), "failed", "{name} stopped."),
        "delete": Verb(LIVE, "deleting", "{name} is being deleted."),
        "gone": Verb(("deleting",), "gone", "{name} is gone."),
    },
    tones={
        "requested": "neutral",
        "network": "busy",
        "scheduling": "busy",
        "creating-namespace": "busy",
        "deploying": "busy",
        "available": "busy",
        "connected": "busy",
        "ready": "good",
        "changing": "busy",
        "failed": "bad",
        "deleting": "busy",
        "gone": "neutral",
    },
    in_flight=(
        "requested",
        "network",
        "scheduling",
        "creating-namespace",
        "deploying",
        "available",
        "connected",
        "changing",
        "deleting",
    ),
)
