"""The errors that services raise for people:

a reason code, a sentence, and the fields that were wrong.
"""

from __future__ import annotations

from gpucloud.reasons import reason


class Problem(Exception):
    """Something a person asked for cannot be done; shown as it is on pages and in REST."""

    status = 409

    def __init__(
        self, message: str, code: str = "NOT_ALLOWED", fields: dict[str, list[str]] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.fields = fields or {}

    @property
    def next(self) -> str:
        return reason(self.code).next


class NotAllowed(Problem):
    """The lifecycle has no such move from the present state."""


class Stale(Problem):
    """Somebody else changed the row since it was read: zero rows were updated."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "STALE")


class Invalid(Problem):
    """Wrong values: `fields` maps names (dotted for nested) to sentences."""

    status = 400

    def __init__(self, fields: dict[str, list[str]]) -> None:
        text = "; ".join(f"{name}: {' '.join(found)}" for name, found in fields.items())
        super().__init__(f"Some values are wrong: {text}", "INVALID", fields)


class Denied(Problem):
    """The person's role does not allow it."""

    status = 403

    def __init__(self, message: str) -> None:
        super().__init__(message, "DENIED")
