"""Small pieces every Redfish resource is put together from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]
OK = {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"}


def ref(path: str) -> Json:
    return {"@odata.id": path}


def refs(paths: Iterable[str]) -> list[Json]:
    return [ref(path) for path in paths]


def resource(path: str, kind: str, name: str, **content: Any) -> Json:
    """A resource; `kind` is like `Chassis.v1_23_0`, the identifier is the path's last part."""
    family = kind.partition(".")[0]
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}.{family}",
        "Id": path.rpartition("/")[2],
        "Name": name,
        **content,
    }


def collection(path: str, kind: str, members: Iterable[str]) -> Json:
    listed = refs(f"{path}/{member}" for member in members)
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": f"{kind} Collection",
        "Members": listed,
        "Members@odata.count": len(listed),
    }


def error(code: str, message: str, *arguments: str) -> Json:
    """The body of a refused request."""
    return {
        "error": {
            "code": f"Base.1.18.{code}",
            "message": message,
            "@Message.ExtendedInfo": [
                {
                    "@odata.type": "#Message.v1_2_1.Message",
                    "MessageId": f"Base.1.18.{code}",
                    "Message": message,
                    "MessageArgs": list(arguments),
                    "Severity": "Warning",
                }
            ],
        }
    }
