"""Prints docs/lifecycles.md from the tables that the code runs on."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import BaseCommand

from gpucloud.lifecycle import Lifecycle
from inventory.lifecycle import SERVER
from network.lifecycle import ATTACHMENT, SEGMENT
from provisioning.lifecycle import CLAIM, OPERATION
from tenants.lifecycle import CLUSTER

HEAD: Final = """# Lifecycles

What may happen to an object is one table per model, in `<app>/lifecycle.py`. A move is one
conditional UPDATE with its history row; anything that the table does not allow is refused. This
page is printed from the tables: `python manage.py lifecycles > docs/lifecycles.md`.
"""
CHAPTERS: Final = (
    (
        "Server",
        SERVER,
        "What a claim does to its server in detail (installing, moving, joining) is told by the "
        "claim's operation; the server itself is only held.",
    ),
    (
        "Claim",
        CLAIM,
        "“Retry” keeps the server; “retry unbound” is a retry of a claim that never got one.",
    ),
    (
        "Cluster",
        CLUSTER,
        "The phases follow each other as drawn. Each may be entered from any other one, because a "
        "retry may go back over phases that were passed.",
    ),
    (
        "Operation",
        OPERATION,
        "One run of steps for a server: claiming, releasing, inspecting or wiping it.",
    ),
    ("Segment", SEGMENT, "One isolated network on the fabric."),
    ("Attachment", ATTACHMENT, "One port's membership in one segment."),
)


class Command(BaseCommand):
    """Print the lifecycles' page."""

    help = "Print docs/lifecycles.md from the lifecycles' tables."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(HEAD + "".join(_chapter(*chapter) for chapter in CHAPTERS), ending="")


def _chapter(title: str, lifecycle: Lifecycle, note: str) -> str:
    return f"\n## {title}\n\n{note}\n\n```mermaid\n{lifecycle.mermaid()}\n```\n"
