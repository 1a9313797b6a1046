"""What may happen to a segment and to an attachment."""

from __future__ import annotations

from gpucloud.lifecycle import Lifecycle, Verb

SEGMENT = Lifecycle(
    kind="segment",
    verbs={
        "applied": Verb(("wanted", "failed", "applied"), "applied", "{name} is on the fabric."),
        "fail": Verb(("wanted", "removing"), "failed", "The fabric refused {name}."),
        "remove": Verb(("wanted", "applied", "failed"), "removing", "{name} is being removed."),
        "gone": Verb(("removing",), "gone", "{name} is gone from the fabric."),
    },
    tones={
        "wanted": "neutral",
        "applied": "good",
        "failed": "bad",
        "removing": "busy",
        "gone": "neutral",
    },
    in_flight=("wanted", "removing"),
)

ATTACHMENT = Lifecycle(
    kind="attachment",
    verbs={
        "apply": Verb(("wanted", "failed"), "applying", "{name}: change sent."),
        "applied": Verb(
            ("wanted", "applying", "failed", "applied"), "applied", "{name}: read back."
        ),
        "fail": Verb(("wanted", "applying", "removing"), "failed", "{name}: not as wanted."),
        "remove": Verb(("wanted", "applying", "applied", "failed"), "removing", "{name}: leaving."),
        "gone": Verb(
            ("wanted", "applying", "applied", "failed", "removing"), "gone", "{name}: left."
        ),
    },
    tones={
        "wanted": "neutral",
        "applying": "busy",
        "applied": "good",
        "failed": "bad",
        "removing": "busy",
        "gone": "neutral",
    },
    in_flight=("wanted", "applying", "removing"),
)
