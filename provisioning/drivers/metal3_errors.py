"""Metal3's words for what went wrong, as our reason codes."""

from __future__ import annotations

from gpucloud.drivers import DriverError
from inventory.drivers.bmh import Host

# The first phrase found in the message decides; Ironic and its ramdisk have no codes of their own.
PHRASES: tuple[tuple[str, str, str], ...] = (
    ("validation of image href", "IMAGE_UNREACHABLE", "Correct the image, then retry."),
    ("could not be downloaded", "IMAGE_UNREACHABLE", "Correct the image, then retry."),
    ("could not read the checksum", "IMAGE_UNREACHABLE", "Correct the image, then retry."),
    ("checksum", "IMAGE_CHECKSUM", "Correct the image or its checksum, then retry."),
    ("the image's sha", "IMAGE_CHECKSUM", "Correct the image or its checksum, then retry."),
    ("the image's md5", "IMAGE_CHECKSUM", "Correct the image or its checksum, then retry."),
    ("virtual media", "MEDIA_IGNORED", "Reset the BMC, then retry."),
    ("timeout reached", "INSTALL_SILENT", "Look at the server's console, then retry."),
    ("did not change", "POWER_IGNORED", "Look at the server, then retry."),
    ("change power state", "POWER_IGNORED", "Look at the server, then retry."),
)
LOGIN = ("unable to log in", "refused with 401", "refused with 403", "credentials")


def raised(host: Host, doing: str, permanent: bool) -> DriverError:
    """The host's error as ours; `doing` says in which of our steps it stands in the way."""
    message = f"Metal3 reports a {host.error_type} on {host.name} while {doing}: {host.error}"
    low = host.error.lower()
    if host.error_type in ("registration error", "power management error"):
        return _bmc(message, low)
    for phrase, code, hint in PHRASES:
        if phrase in low:
            return DriverError(message, code, permanent, hint)
    code = "INSTALL_FAILED" if host.error_type == "provisioning error" else "HOST_ERROR"
    return DriverError(message, code, permanent, "Read Metal3's words, mend, then retry.", wait=5)


def _bmc(message: str, low: str) -> DriverError:
    """Metal3 goes on trying by itself, and so do we until the step's deadline."""
    if any(word in low for word in LOGIN):
        return DriverError(
            message, "BMC_LOGIN", hint="Set the right credentials in the host's Secret.", wait=10
        )
    code = "POWER_IGNORED" if "change power state" in low else "BMC_UNREACHABLE"
    return DriverError(message, code, hint="Check the BMC, then retry.", wait=10)
