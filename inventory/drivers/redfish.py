"""Servers through their Redfish BMC: power, boot device, virtual media; facts are read beside."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from sushy import BootSource, BootSourceOverrideEnabled, ResetType  # type: ignore[import-untyped]
from sushy import exceptions as sushy_errors

from gpucloud import drivers
from gpucloud.drivers import DriverError, setting
from gpucloud.wire import pinned
from inventory.drivers import BootDevice, Inspection, PowerState
from inventory.drivers.address import Address
from inventory.drivers.redfish_facts import power_of, read_facts
from inventory.drivers.redfish_session import Client, connect
from inventory.drivers.redfish_wire import Login

CHECK_SECONDS = 4.5
BOOT = {
    "none": BootSource.NONE,
    "pxe": BootSource.PXE,
    "cd": BootSource.CD,
    "hdd": BootSource.HDD,
}


@dataclass(frozen=True)
class RedfishConfig(drivers.Config):
    """One BMC. `certificate` empty: the one it shows first is taken, and told by inspect()."""

    address: str = setting(
        label="Address", help="https://10.0.0.5, or with the system: …/redfish/v1/Systems/1"
    )
    username: str = setting(label="User name")
    password: str = setting(label="Password", secret=True)
    certificate: str = setting("", label="Pinned certificate", help="SHA-256, in hex.")
    auth: str = setting("session", label="Login by", choices=("session", "basic"))
    connect_timeout: float = setting(5.0, label="Connect time-out in seconds")
    read_timeout: float = setting(20.0, label="Read time-out in seconds")


class Redfish:
    """BmcDriver over sushy. Cheap to make: sessions are shared by all instances of one login."""

    kind: ClassVar[str] = "redfish"
    label: ClassVar[str] = "Redfish"
    Config: ClassVar[type] = RedfishConfig

    def __init__(self, config: RedfishConfig) -> None:
        try:
            address = Address.parse(config.address)
        except ValueError as error:
            raise DriverError(
                f"{config.address!r} is no BMC address.",
                code="DRIVER_CONFIG",
                permanent=True,
                hint="Write it as https://host, with the system's path if it has several.",
            ) from error
        self.login = Login(
            address,
            config.username,
            config.password,
            pinned(config.certificate, config.address),
            config.auth == "basic",
            config.connect_timeout,
            config.read_timeout,
        )

    def check(self) -> list[str]:
        """Tries a login of its own, so that a cached session cannot hide a wrong password."""
        client = Client(self.login)
        try:
            with drivers.call_budget(min(CHECK_SECONDS, drivers.budget_left())), client.using():
                client.system()
        except DriverError as error:
            return [f"{error.message} {error.hint}".strip()]
        finally:
            client.close()
        return []

    def inspect(self) -> Inspection:
        with connect(self.login) as client:
            return read_facts(client)

    def power(self) -> PowerState:
        with connect(self.login) as client:
            told = client.system().json
        status, progress = told.get("Status"), told.get("BootProgress")
        return PowerState(
            power=power_of(told),
            at=datetime.now(UTC),
            via=self.kind,
            health=str(status.get("Health") or "") if isinstance(status, dict) else "",
            boot_progress=str(progress.get("LastState") or "")
            if isinstance(progress, dict)
            else "",
        )

    def set_power(self, power: Literal["on", "off"]) -> None:
        kind = ResetType.ON if power == "on" else ResetType.FORCE_OFF
        with connect(self.login) as client:
            system = client.system()
            if power_of(system.json) != power:
                system.reset_system(kind)

    def boot_from(self, device: BootDevice) -> None:
        with connect(self.login) as client:
            system = client.system()
            if not _boots_from(client, system, device):
                _set_boot(system, device)
                system.refresh(force=True)
                if not _boots_from(client, system, device):
                    raise DriverError(
                        f"{client.host} accepted the boot device {device} and did not keep it.",
                        code="BOOT_IGNORED",
                        hint="Retry, or set it by hand.",
                    )

    def media(self, url: str | None) -> None:
        with connect(self.login) as client:
            slot = _cd_slot(client)
            if _holds(slot) and (url is None or not _is(slot, url)):
                slot.eject_media()
                slot.refresh(force=True)
            if url is not None and not _holds(slot):
                slot.insert_media(url)
                slot.refresh(force=True)
            if _holds(slot) != (url is not None):
                verb = "inserted" if url else "ejected"
                raise DriverError(
                    f"{client.host} accepted the virtual media, but it is not {verb}.",
                    code="MEDIA_IGNORED",
                    hint="Retry; reset the BMC if it stays so.",
                )


def _boots_from(client: Client, system: Any, device: BootDevice) -> bool:
    boot = _boot_section(client, system)
    enabled = boot.get("BootSourceOverrideEnabled")
    if device == "none":
        return enabled in ("Disabled", None)
    targets = {BOOT[device].value, "UsbCd" if device == "cd" else ""}
    # Continuous is accepted: some BMCs know, or tell, nothing else.
    return enabled in ("Once", "Continuous") and boot.get("BootSourceOverrideTarget") in targets


def _boot_section(client: Client, system: Any) -> dict[str, Any]:
    """Where the override is kept: in the Settings resource, if that has it, else the system's."""
    settings = system.json.get("@Redfish.Settings")
    where = settings.get("SettingsObject") if isinstance(settings, dict) else None
    own = system.json.get("Boot")
    boot: dict[str, Any] = dict(own) if isinstance(own, dict) else {}
    if isinstance(where, dict) and where.get("@odata.id"):
        pending = client.get(str(where["@odata.id"])).get("Boot")
        boot |= pending if isinstance(pending, dict) else {}
    return boot


def _set_boot(system: Any, device: BootDevice) -> None:
    wish: dict[str, Any] = {"target": BOOT[device], "enabled": BootSourceOverrideEnabled.ONCE}
    if device == "none":
        wish["enabled"] = BootSourceOverrideEnabled.DISABLED
    boot = system.json.get("Boot") or {}
    if "supermicro" in str(system.json.get("Manufacturer")).lower():
        # Supermicro resets whatever of the three is not sent; others refuse a needless mode.
        wish["mode"] = boot.get("BootSourceOverrideMode")
    try:
        system.set_system_boot_options(**{k: v for k, v in wish.items() if v is not None})
    except sushy_errors.HTTPError as error:
        if error.status_code == 412:
            # The system changed between our read and write; this is its new ETag.
            system.refresh(force=True)
        elif error.status_code == 400 and device == "none":
            # iLO refuses to disable the override with target None.
            del wish["target"]
        else:
            raise
        system.set_system_boot_options(**{k: v for k, v in wish.items() if v is not None})


def _cd_slot(client: Client) -> Any:
    """The first virtual media slot that takes a CD, under the system or, as before, its manager."""
    system = client.system()
    owners = [system] if isinstance(system.json.get("VirtualMedia"), dict) else system.managers
    for owner in owners:
        for slot in owner.virtual_media.get_members():
            kinds = slot.json.get("MediaTypes") or []
            if {"CD", "DVD"} & set(kinds):
                return slot
    raise DriverError(
        f"{client.host} has no virtual CD slot.",
        code="BMC_UNSUPPORTED",
        permanent=True,
        hint="Licence the BMC for virtual media, or use another provider for this server.",
    )


def _holds(slot: Any) -> bool:
    # Supermicro keeps telling the last Image after an eject, so that says nothing.
    told = slot.json
    return bool(told.get("Inserted")) and told.get("ConnectedVia") != "NotConnected"


def _is(slot: Any, url: str) -> bool:
    return str(slot.json.get("Image") or "") == url
