"""The ProviderDriver protocol and the values that cross it:

how one server (or VM) becomes a node and blank again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, Protocol

from gpucloud.drivers import Progress
from inventory.drivers import BmcDriver, PowerState

Verb = Literal["claim", "release", "inspect", "wipe"]
Goal = Literal["prepared", "installed", "started"]
RemoveGoal = Literal["stopped", "released"]
StepName = str


@dataclass(frozen=True)
class ImageSpec:
    name: str
    url: str
    checksum: str
    checksum_type: str
    format: str


@dataclass(frozen=True)
class ServerRef:
    """The server as the provider's engine knows it:

    `engine_id` is e.g. `default/bare-metal-2` for Metal3.
    """

    uid: str
    name: str
    engine_id: str
    system_uuid: str
    boot_mac: str


@dataclass(frozen=True)
class MediaSpec:
    """The agent ISO of one operation: made by us, served by the media door, good for one hello."""

    url: str
    checksum: str = ""


@dataclass(frozen=True)
class NodeSpec:
    """All a provider needs for one operation. `claim_uid` names every outside object before it is
    created.

    `dhcp` are the provisioning annotations to keep on the host: ip-address (CIDR), gateway,
    dns-servers. `power` is the fresh reading at the BMC; `since` when the running step began;
    `post_seconds` the node type's POST.
    """

    claim_uid: str
    claim_name: str
    tenant: str
    verb: Verb
    server: ServerRef
    bmc: BmcDriver | None
    image: ImageSpec | None = None
    user_data: str = ""
    network_data: dict[str, Any] = field(default_factory=dict)
    meta_data: dict[str, Any] = field(default_factory=dict)
    dhcp: dict[str, str] = field(default_factory=dict)
    media: MediaSpec | None = None
    post_seconds: float = 600.0
    since: datetime | None = None
    power: PowerState | None = None


@dataclass(frozen=True)
class Observed:
    """What the provider's engine says of the object now;

    `state` is its own word, shown beside ours.
    """

    exists: bool
    state: str = ""
    power: str = "unknown"
    error_code: str = ""
    error: str = ""
    claimed_by: str = ""
    at: datetime | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StockItem:
    """One thing the engine could give:

    its engine id, labels, state, and why it may not be taken ('' = may).
    """

    engine_id: str
    labels: dict[str, str]
    state: str
    refused: str = ""
    refused_code: str = ""


class ProviderDriver(Protocol):
    """One source of nodes. Raises DriverError only; never sleeps, loops, touches the ORM or
    enqueues; all idempotent.

    `steps` maps a verb to the ordered step names of design.md section 3. `physical` providers
    own Servers and switch
    power only through `spec.bmc`. `wipe_class` is `verified` or `engine`.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    Config: ClassVar[type]
    steps: ClassVar[dict[str, tuple[StepName, ...]]]
    physical: ClassVar[bool]
    wipe_class: ClassVar[str]

    def __init__(self, config: Any) -> None: ...

    def check(self) -> list[str]: ...

    def stock(self, selector: dict[str, str]) -> list[StockItem]: ...

    def ensure(self, spec: NodeSpec, goal: Goal) -> Progress: ...

    def observe(self, ref: ServerRef) -> Observed: ...

    def wipe(self, spec: NodeSpec) -> Progress:
        """Bring our agent up on the server from `spec.media`;

        done when it is booting (its report comes by the door).
        """

    def remove(self, spec: NodeSpec, goal: RemoveGoal) -> Progress:
        """`stopped`: off and read off at the BMC (both directions). `released`: nothing of the
        tenant left in the engine's object; called before Wipe (with `spec.media`) and, with
        `media` None, at the end to give it free.
        """
