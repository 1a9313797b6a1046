"""What goes wrong in a Kubernetes API, as the Status objects that clients understand."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]


class ApiError(Exception):
    """An answer other than success; `status()` is its body."""

    def __init__(self, code: int, reason: str, message: str, details: Obj | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def status(self) -> Obj:
        body: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            body["details"] = self.details
        return body


def _details(resource: str, name: str) -> Obj:
    plural, _, group = resource.partition(".")
    return {"name": name, "kind": plural} | ({"group": group} if group else {})


def not_found(resource: str, name: str) -> ApiError:
    return ApiError(404, "NotFound", f'{resource} "{name}" not found', _details(resource, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def already_exists(resource: str, name: str) -> ApiError:
    return ApiError(
        409, "AlreadyExists", f'{resource} "{name}" already exists', _details(resource, name)
    )


def conflict(resource: str, name: str, why: str = "") -> ApiError:
    why = why or (
        "the object has been modified; please apply your changes to the latest version and "
        "try again"
    )
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {resource} "{name}": {why}',
        _details(resource, name),
    )


def apply_conflict(causes: list[tuple[str, str]]) -> ApiError:
    """Server-side apply met fields of other managers: (manager, field) for each."""
    owners: dict[str, list[str]] = {}
    for manager, field in causes:
        owners.setdefault(manager, []).append(field)
    told = "; ".join(
        f"conflict with {manager}: {', '.join(fields)}" for manager, fields in owners.items()
    )
    plural = "conflict" if len(causes) == 1 else "conflicts"
    listed = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
        for manager, field in causes
    ]
    message = f"Apply failed with {len(causes)} {plural}: {told}"
    return ApiError(409, "Conflict", message, {"causes": listed})


def invalid(kind: str, name: str, causes: list[tuple[str, str, str]]) -> ApiError:
    """The object breaks its schema; causes are (reason, message, field)."""
    told = ", ".join(f"{field}: {message}" for _, message, field in causes)
    if len(causes) > 1:
        told = f"[{told}]"
    plain, _, group = kind.partition(".")
    details: Obj = {"name": name, "kind": plain}
    if group:
        details["group"] = group
    details["causes"] = [{"reason": r, "message": m, "field": f} for r, m, f in causes]
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {told}', details)


def rejected_patch(why: str) -> ApiError:
    message = f"the server rejected our request due to an error in our request: {why}"
    return ApiError(422, "Invalid", message)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(resource: str, name: str, why: str) -> ApiError:
    return ApiError(
        403, "Forbidden", f'{resource} "{name}" is forbidden: {why}', _details(resource, name)
    )


def method_not_allowed() -> ApiError:
    return ApiError(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
    )


def unsupported_media_type(accepted: list[str]) -> ApiError:
    return ApiError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted),
    )


def expired(asked: int, oldest: int) -> ApiError:
    return ApiError(410, "Expired", f"too old resource version: {asked} ({oldest})")


def too_large_version(asked: int, current: int) -> ApiError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        {"causes": [cause], "retryAfterSeconds": 1},
    )
