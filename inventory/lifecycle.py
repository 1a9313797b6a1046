"""What may happen to a server.

"Provisioning" and "provisioned" are its claim's words, not the server's.
"""

from __future__ import annotations

from gpucloud.lifecycle import Lifecycle, Verb

SERVER = Lifecycle(
    kind="server",
    verbs={
        "inspect": Verb(
            ("enrolled", "available", "failed"), "inspecting", "{name} is being inspected."
        ),
        "inspected": Verb(("inspecting",), "enrolled", "{name} was inspected."),
        "offer": Verb(("enrolled", "cleaning"), "available", "{name} is clean and on offer."),
        "hold": Verb(("available",), "held", "{name} is held by a claim."),
        "clean": Verb(("held", "enrolled", "failed"), "cleaning", "{name} is being cleaned."),
        "fail": Verb(("inspecting", "cleaning", "held"), "failed", "{name} is out of service."),
        "rehold": Verb(("failed", "cleaning"), "held", "{name} is held by its claim again."),
        "retire": Verb(("enrolled", "available", "failed"), "retired", "{name} was retired."),
    },
    tones={
        "enrolled": "neutral",
        "inspecting": "busy",
        "available": "good",
        "held": "neutral",
        "cleaning": "busy",
        "failed": "bad",
        "retired": "neutral",
    },
    in_flight=("inspecting", "cleaning"),
)
