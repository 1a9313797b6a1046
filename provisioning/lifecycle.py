"""What may happen to a claim and to an operation."""

from __future__ import annotations

from gpucloud.lifecycle import Lifecycle, Verb

CLAIM = Lifecycle(
    kind="claim",
    verbs={
        "bind": Verb(("pending",), "provisioning", "{name} got a server."),
        "ready": Verb(("provisioning",), "ready", "{name} is ready."),
        "fail": Verb(("pending", "provisioning"), "failed", "{name} stopped."),
        "retry": Verb(("failed",), "provisioning", "{name} is tried again."),
        "retry unbound": Verb(("failed",), "pending", "{name} is tried again."),
        "release": Verb(
            ("pending", "provisioning", "ready", "failed"), "releasing", "{name} is being released."
        ),
        "let go": Verb(("pending", "failed", "releasing"), "gone", "{name} is gone."),
    },
    tones={
        "pending": "neutral",
        "provisioning": "busy",
        "ready": "good",
        "failed": "bad",
        "releasing": "busy",
        "gone": "neutral",
    },
    in_flight=("pending", "provisioning", "releasing"),
)

OPERATION = Lifecycle(
    kind="operation",
    verbs={
        "finish": Verb(("active",), "done", "{name} is done."),
        "fail": Verb(("active",), "failed", "{name} stopped."),
        "retry": Verb(("failed",), "active", "{name} is tried again."),
        "cancel": Verb(("active", "failed"), "cancelled", "{name} was ended."),
    },
    tones={"active": "busy", "done": "good", "failed": "bad", "cancelled": "neutral"},
    in_flight=("active",),
)
