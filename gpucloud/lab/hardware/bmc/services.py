"""Redfish resources of the BMC's own services: sessions, accounts, events."""

from __future__ import annotations

from gpucloud.lab.hardware.bmc.accounts import (
    LOCK_WALL_SECONDS,
    SESSION_WALL_SECONDS,
    WRONG_PASSWORDS,
    Session,
)
from gpucloud.lab.hardware.bmc.bmc import ROOT, Bmc
from gpucloud.lab.hardware.bmc.parts import OK, Json, collection, ref, resource

SESSIONS = f"{ROOT}/SessionService/Sessions"
ACCOUNTS = f"{ROOT}/AccountService/Accounts"
SUBSCRIPTIONS = f"{ROOT}/EventService/Subscriptions"


def session_service(bmc: Bmc) -> Json:
    return resource(
        f"{ROOT}/SessionService",
        "SessionService.v1_1_8",
        "Session Service",
        ServiceEnabled=True,
        SessionTimeout=int(SESSION_WALL_SECONDS),
        Sessions=ref(SESSIONS),
        Status=OK,
    )


def sessions(bmc: Bmc) -> Json:
    return collection(SESSIONS, "Session", (entry.id for entry in bmc.accounts.sessions()))


def session(bmc: Bmc, identifier: str) -> Json | None:
    found = (entry for entry in bmc.accounts.sessions() if entry.id == identifier)
    return next((describe_session(entry) for entry in found), None)


def describe_session(entry: Session) -> Json:
    """Without its token: that is given once, in a header."""
    return resource(
        f"{SESSIONS}/{entry.id}", "Session.v1_7_0", "User Session", UserName=entry.username
    )


def account_service(bmc: Bmc) -> Json:
    return resource(
        f"{ROOT}/AccountService",
        "AccountService.v1_15_0",
        "Account Service",
        ServiceEnabled=True,
        AccountLockoutThreshold=WRONG_PASSWORDS,
        AccountLockoutDuration=int(LOCK_WALL_SECONDS),
        MinPasswordLength=8,
        Accounts=ref(ACCOUNTS),
        Status=OK,
    )


def accounts(bmc: Bmc) -> Json:
    return collection(ACCOUNTS, "ManagerAccount", ["1"])


def account(bmc: Bmc) -> Json:
    return resource(
        f"{ACCOUNTS}/1",
        "ManagerAccount.v1_12_0",
        "User Account",
        UserName=bmc.accounts.username,
        Password=None,
        RoleId="Administrator",
        Enabled=True,
        Locked=bmc.accounts.is_locked,
    )


def event_service(bmc: Bmc) -> Json:
    path = f"{ROOT}/EventService"
    return resource(
        path,
        "EventService.v1_10_0",
        "Event Service",
        ServiceEnabled=True,
        DeliveryRetryAttempts=3,
        DeliveryRetryIntervalSeconds=1,
        EventTypesForSubscription=["Alert", "StatusChange", "ResourceUpdated"],
        Subscriptions=ref(SUBSCRIPTIONS),
        Actions={
            "#EventService.SubmitTestEvent": {
                "target": f"{path}/Actions/EventService.SubmitTestEvent"
            }
        },
        Status=OK,
    )


def subscriptions(bmc: Bmc) -> Json:
    return collection(SUBSCRIPTIONS, "EventDestination", bmc.memory.subscriptions)


def subscription(bmc: Bmc, identifier: str) -> Json | None:
    found = bmc.memory.subscriptions.get(identifier)
    if found is None:
        return None
    path = f"{SUBSCRIPTIONS}/{identifier}"
    return resource(path, "EventDestination.v1_14_0", "Subscription", **found)
