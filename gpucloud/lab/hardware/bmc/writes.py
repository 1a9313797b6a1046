"""What POST, PATCH and DELETE do to a BMC and, through it, to its machine."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from gpucloud.lab.hardware.bmc.bmc import Bmc
from gpucloud.lab.hardware.bmc.parts import Json
from gpucloud.lab.hardware.bmc.services import SESSIONS, SUBSCRIPTIONS, describe_session
from gpucloud.lab.hardware.bmc.services import subscription as describe_subscription
from gpucloud.lab.hardware.bmc.system import BOOT_ENABLED, BOOT_MODES, BOOT_TARGETS, LEDS, RESETS
from gpucloud.lab.hardware.server import MEDIA_SLOTS

SHORTEST_PASSWORD = 8


class Answer(Exception):
    """A refusal, with status, Redfish message and its arguments."""

    def __init__(self, status: int, code: str, message: str, *arguments: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.arguments = status, code, message, arguments


# A handler returns the body and extra headers; no body means 204.
Done = tuple[Json | None, dict[str, str]]
NOTHING: Done = (None, {})


def reset(bmc: Bmc, body: Json) -> Done:
    kind = body.get("ResetType")
    _one_of("ResetType", kind, RESETS)
    if kind == "ForceRestart" and not bmc.machine.is_on:
        raise Answer(409, "ResourceInUse", "The system is off and cannot be restarted.")
    if not bmc.server.faults.get("ignore_power"):
        bmc.machine.press(str(kind), bmc.actor)
    return NOTHING


def change_system(bmc: Bmc, body: Json) -> Done:
    memory = bmc.memory
    unknown = set(body) - {"Boot", "IndicatorLED", "LocationIndicatorActive", "AssetTag"}
    if unknown:
        raise _unknown(min(unknown))
    if "Boot" in body:
        _change_boot(bmc, body["Boot"])
    if "IndicatorLED" in body:
        _one_of("IndicatorLED", body["IndicatorLED"], LEDS)
        memory.led = body["IndicatorLED"]
    if "LocationIndicatorActive" in body:
        memory.led = "Blinking" if body["LocationIndicatorActive"] else "Off"
    if "AssetTag" in body:
        memory.asset_tag = str(body["AssetTag"])[:63]
    bmc.server.save()
    return NOTHING


def _change_boot(bmc: Bmc, boot: Any) -> None:
    if not isinstance(boot, dict):
        raise Answer(400, "PropertyValueTypeError", "Boot is not an object.", "Boot")
    memory = bmc.memory
    target = boot.get("BootSourceOverrideTarget", memory.boot_target)
    enabled = boot.get("BootSourceOverrideEnabled", memory.boot_enabled)
    mode = boot.get("BootSourceOverrideMode", memory.boot_mode)
    _one_of("BootSourceOverrideTarget", target, BOOT_TARGETS)
    _one_of("BootSourceOverrideEnabled", enabled, BOOT_ENABLED)
    _one_of("BootSourceOverrideMode", mode, BOOT_MODES)
    if "BootSourceOverrideEnabled" not in boot and "BootSourceOverrideTarget" in boot:
        enabled = "Once" if enabled == "Disabled" else enabled
    if target == "None" or enabled == "Disabled":
        target, enabled = "None", "Disabled"
    before = {"target": memory.boot_target, "enabled": memory.boot_enabled}
    memory.boot_target, memory.boot_enabled, memory.boot_mode = target, enabled, mode
    after = {"target": target, "enabled": enabled}
    if before != after:
        bmc.act("boot", before, after)


def insert_media(bmc: Bmc, body: Json, slot: str) -> Done:
    _slot(slot)
    image = body.get("Image")
    if not isinstance(image, str) or not image:
        raise Answer(400, "ActionParameterMissing", "The parameter Image is missing.", "Image")
    if urlsplit(image).scheme not in ("http", "https") or not urlsplit(image).hostname:
        raise Answer(400, "ActionParameterValueFormatError", "Image is no http(s) URL.", "Image")
    if bmc.server.faults.get("ignore_media"):
        return NOTHING
    before = bmc.memory.media.get(slot)
    if before and before != image:
        raise Answer(409, "ResourceInUse", f"Other media is inserted in {slot}; eject it first.")
    bmc.memory.media[slot] = image
    bmc.server.save()
    # The path of the URL can be a boot key, which is a secret: the log names slot and server only.
    bmc.act("media", {"slot": slot, "inserted": before is not None}, _inserted(slot, image))
    return NOTHING


def eject_media(bmc: Bmc, body: Json, slot: str) -> Done:
    _slot(slot)
    if bmc.memory.media.pop(slot, None) is not None:
        bmc.server.save()
        bmc.act("media", {"slot": slot, "inserted": True}, {"slot": slot, "inserted": False})
    return NOTHING


def _inserted(slot: str, image: str) -> Json:
    parts = urlsplit(image)
    where = f"{parts.scheme}://{parts.netloc}"
    name = parts.path.rpartition("/")[2]
    return {"slot": slot, "inserted": True, "from": where, "name": name}


def change_secure_boot(bmc: Bmc, body: Json) -> Done:
    wish = body.get("SecureBootEnable")
    if not isinstance(wish, bool):
        raise _unknown(min(body, default="SecureBootEnable"))
    bmc.memory.secure_boot = wish
    bmc.server.save()
    return NOTHING


def clear_log(bmc: Bmc, body: Json) -> Done:
    bmc.memory.log.clear()
    bmc.server.save()
    return NOTHING


def change_account(bmc: Bmc, body: Json) -> Done:
    password = body.get("Password")
    if not isinstance(password, str) or set(body) != {"Password"}:
        raise _unknown(min(set(body) - {"Password"}, default="Password"))
    if len(password) < SHORTEST_PASSWORD:
        message = f"A password has at least {SHORTEST_PASSWORD} characters."
        raise Answer(400, "PropertyValueFormatError", message, "Password")
    bmc.accounts.set_password(password)
    return NOTHING


def open_session(bmc: Bmc, body: Json) -> Done:
    username, password = body.get("UserName"), body.get("Password")
    if not isinstance(username, str) or not isinstance(password, str):
        raise Answer(400, "PropertyMissing", "UserName and Password are needed.", "UserName")
    session = bmc.accounts.open_session(username, password)
    headers = {"X-Auth-Token": session.token, "Location": f"{SESSIONS}/{session.id}"}
    return describe_session(session), headers


def close_session(bmc: Bmc, identifier: str) -> Done:
    if not bmc.accounts.close_session(identifier):
        raise _missing(identifier)
    return NOTHING


def subscribe(bmc: Bmc, body: Json) -> Done:
    destination = body.get("Destination")
    if not isinstance(destination, str) or urlsplit(destination).scheme not in ("http", "https"):
        message = "Destination must be an http(s) URL."
        raise Answer(400, "PropertyValueFormatError", message, "Destination")
    if bmc.events.is_full():
        raise Answer(503, "EventSubscriptionLimitExceeded", "No more subscriptions are taken.")
    identifier = bmc.events.subscribe(body)
    headers = {"Location": f"{SUBSCRIPTIONS}/{identifier}"}
    return describe_subscription(bmc, identifier), headers


def unsubscribe(bmc: Bmc, identifier: str) -> Done:
    if not bmc.events.unsubscribe(identifier):
        raise _missing(identifier)
    return NOTHING


def send_test_event(bmc: Bmc, body: Json) -> Done:
    bmc.events.send("test", "This is a test.")
    return NOTHING


def _slot(name: str) -> None:
    if name not in MEDIA_SLOTS:
        raise _missing(name)


def _one_of(name: str, value: Any, allowed: list[str]) -> None:
    if value not in allowed:
        message = f"The value {value!r} of {name} is not one of {', '.join(allowed)}."
        raise Answer(400, "PropertyValueNotInList", message, str(value), name)


def _unknown(name: str) -> Answer:
    return Answer(400, "PropertyUnknown", f"The property {name} cannot be changed.", name)


def _missing(name: str) -> Answer:
    return Answer(404, "ResourceMissingAtURI", f"There is no {name} here.", name)
