"""Labels: what Kubernetes takes as one, and which of them nobody may wish for on a node."""

from __future__ import annotations

import re
from typing import Final

KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
# A kubelet that is given another label of these domains refuses to start, and the node never joins.
GUARDED: Final = ("kubernetes.io", "k8s.io")
ALLOWED: Final = ("node.kubernetes.io", "kubelet.kubernetes.io")
PLACES: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
OURS: Final = "gpucloud.dev"


def problem(key: str, value: str) -> str:
    """Why this is no label, in a sentence; "" when it is one."""
    # The whole text: `$` would let a line break at the end pass, into a kubelet's arguments.
    if KEY.fullmatch(key) and VALUE.fullmatch(value):
        return ""
    return f"Not a label: {key}={value}."


def node_problem(key: str) -> str:
    """Why a node cannot be asked to carry this label; "" when it can."""
    domain = key.partition("/")[0] if "/" in key else ""
    if _within(domain, (OURS,)):
        return f"{key}: labels of {OURS} are set by the console."
    if key in PLACES or _within(domain, ALLOWED) or not _within(domain, GUARDED):
        return ""
    return f"{key}: a kubelet may not give itself this label of Kubernetes' own; choose another."


def node_problems(labels: dict[str, str]) -> list[str]:
    return [text for key in labels if (text := node_problem(key))]


def _within(domain: str, roots: tuple[str, ...]) -> bool:
    return any(domain == root or domain.endswith(f".{root}") for root in roots)
