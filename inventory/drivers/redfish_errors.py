"""What goes wrong on the way to a BMC, as DriverError: transport, Redfish errors, sushy's own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests
from sushy import exceptions  # type: ignore[import-untyped]

from gpucloud.drivers import DriverError
from gpucloud.wire import AnswerTooLarge

Json = dict[str, Any]
# An error body may be anything; this much of it is kept.
SHOWN_CHARACTERS = 200
PASSING = ("InvalidOperationForSystemState", "UnableToModifyDuringSystemPOST", "SYS518")
BUSY = ("RAC0218", "SessionLimitExceeded", "TooManySessions")


@contextmanager
def translated(host: str) -> Iterator[None]:
    """Turn whatever sushy raises into a DriverError that names the BMC."""
    try:
        yield
    except DriverError:
        raise
    except exceptions.HTTPError as error:
        raise _http_error(host, error) from error
    except exceptions.ConnectionError as error:
        raise transport_error(host, "request", error) from error
    except (
        exceptions.MissingActionError,
        exceptions.MissingAttributeError,
        exceptions.InvalidParameterValueError,
    ) as error:
        raise DriverError(
            f"{host} does not offer this: {error}",
            code="BMC_UNSUPPORTED",
            permanent=True,
            hint="Update the BMC, or use another provider for this server.",
        ) from error
    except Exception as error:
        raise DriverError(
            f"{host} sent what cannot be understood ({type(error).__name__}: {error}).",
            code="BMC_ERROR",
            hint="Retry; if it stays, update the BMC's firmware.",
        ) from error


def transport_error(host: str, verb: str, error: Exception) -> DriverError:
    """A request that got no answer, by what went wrong on the way."""
    if isinstance(error, requests.exceptions.SSLError) and "ingerprint" in str(error):
        return DriverError(
            f"{host} shows another certificate than the pinned one.",
            code="BMC_CERTIFICATE",
            permanent=True,
            hint="Find out who changed it; accept the new one only when you know.",
        )
    if isinstance(error, AnswerTooLarge):
        return DriverError(f"{host}: the answer to {verb} is too large.", code="BMC_ERROR")
    late = isinstance(error, (requests.exceptions.ReadTimeout, TimeoutError))
    if late and not isinstance(error, requests.exceptions.ConnectTimeout):
        return DriverError(
            f"{host} answered {verb} too late.",
            code="BMC_TIMEOUT",
            hint="Retry; reset the BMC if it stays slow.",
        )
    return DriverError(
        f"{host} does not answer ({verb}).",
        code="BMC_UNREACHABLE",
        hint="Check cable, address and BMC, then retry.",
    )


def parse_object(answer: requests.Response) -> Json | None:
    """The body as a JSON object, or None when it is anything else."""
    try:
        body = json.loads(answer.content)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def tidy_error(body: Json | None) -> Json:
    """A Redfish error in full: code and message are text, the extended information a list."""
    given = (body or {}).get("error")
    error = given if isinstance(given, dict) else {}
    extended = error.get("@Message.ExtendedInfo") or (body or {}).get("@Message.ExtendedInfo")
    listed = extended if isinstance(extended, list) else [extended]
    kept = [one for one in listed if isinstance(one, dict)]
    first = kept[0] if kept else {}
    return {
        "error": {
            "code": str(error.get("code") or first.get("MessageId") or "Base.1.0.GeneralError"),
            "message": str(error.get("message") or first.get("Message") or ""),
            "@Message.ExtendedInfo": kept,
        }
    }


def _http_error(host: str, error: exceptions.HTTPError) -> DriverError:
    status = int(error.status_code)
    words = str(error.detail or "")[:SHOWN_CHARACTERS]
    everything = f"{error.code} {words} {json.dumps(error.extended_info or [])}"
    said = f"{host} answered {status}. {words}".strip()
    if status in (401, 403):
        if re.search(r"lock", everything, re.IGNORECASE):
            return DriverError(
                said, code="BMC_LOCKED", hint="Wait until the BMC unlocks it.", wait=30
            )
        denied = f"{host} does not allow this user to do that. {words}".strip()
        return DriverError(
            denied if status == 403 else f"{host} refused the user name or password.",
            code="BMC_LOGIN",
            permanent=True,
            hint="Set the right credentials on the server's page, then retry.",
        )
    if any(word in everything for word in BUSY):
        return DriverError(said, code="BMC_ERROR", hint="Other sessions must end first.", wait=30)
    passing = status in (409, 412, 429) or status >= 500
    passing = passing or any(word in everything for word in PASSING)
    return DriverError(
        said,
        code="BMC_ERROR",
        permanent=not passing,
        hint="Retry." if passing else "Read the BMC's words, mend what they name, then retry.",
    )
