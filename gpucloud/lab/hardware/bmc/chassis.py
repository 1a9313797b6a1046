"""Redfish resources of the box: chassis, sensors, power supplies, network adapters, manager."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from gpucloud.lab.acts import now
from gpucloud.lab.hardware.bmc.bmc import ROOT, Bmc
from gpucloud.lab.hardware.bmc.parts import OK, Json, collection, ref, refs, resource

PSUS = ("PSU.1", "PSU.2")
FANS = ("Fan.1", "Fan.2", "Fan.3", "Fan.4")


def chassis(bmc: Bmc) -> Json:
    path, facts = bmc.chassis, bmc.facts
    below = ("NetworkAdapters", "Sensors", "PowerSubsystem", "ThermalSubsystem", "Power", "Thermal")
    return resource(
        path,
        "Chassis.v1_23_0",
        facts.model,
        ChassisType="RackMount",
        Manufacturer=facts.vendor,
        Model=facts.model,
        SerialNumber=facts.serial,
        AssetTag=bmc.memory.asset_tag,
        PowerState=bmc.memory.power,
        IndicatorLED=bmc.memory.led,
        Location={"Placement": {"Rack": facts.rack, "RackOffset": facts.slot}},
        Links={"ComputerSystems": refs([bmc.system]), "ManagedBy": refs([bmc.manager])},
        Status=OK,
        **{name: ref(f"{path}/{name}") for name in below},
    )


def manager(bmc: Bmc) -> Json:
    return resource(
        bmc.manager,
        "Manager.v1_19_0",
        bmc.names.product,
        ManagerType="BMC",
        Manufacturer=bmc.facts.vendor,
        Model=bmc.names.product,
        FirmwareVersion=bmc.facts.bmc_version,
        DateTime=now(),
        PowerState="On",
        # Media moved from the manager to the system in current firmware of both vendors.
        VirtualMedia=ref(f"{bmc.system}/VirtualMedia"),
        Links={"ManagerForServers": refs([bmc.system]), "ManagerForChassis": refs([bmc.chassis])},
        Status=OK,
    )


def adapters(bmc: Bmc) -> Json:
    return collection(f"{bmc.chassis}/NetworkAdapters", "NetworkAdapter", [bmc.names.adapter])


def adapter(bmc: Bmc, name: str) -> Json | None:
    if name != bmc.names.adapter:
        return None
    path = f"{bmc.chassis}/NetworkAdapters/{name}"
    return resource(
        path,
        "NetworkAdapter.v1_9_0",
        "Network adapter",
        Manufacturer="Mellanox",
        Model="ConnectX-7",
        Ports=ref(f"{path}/Ports"),
        Status=OK,
    )


def ports(bmc: Bmc, name: str) -> Json | None:
    if name != bmc.names.adapter:
        return None
    path = f"{bmc.chassis}/NetworkAdapters/{name}/Ports"
    return collection(path, "Port", (port for port, _ in bmc.nics()))


def port(bmc: Bmc, adapter_name: str, name: str) -> Json | None:
    nic = dict(bmc.nics()).get(name)
    if adapter_name != bmc.names.adapter or nic is None:
        return None
    return resource(
        f"{bmc.chassis}/NetworkAdapters/{adapter_name}/Ports/{name}",
        "Port.v1_12_0",
        nic.name,
        PortId=name,
        LinkStatus="LinkUp",
        CurrentSpeedGbps=nic.speed_mbps / 1000,
        Ethernet={
            "AssociatedMACAddresses": [nic.mac.upper()],
            "LLDPEnabled": True,
            "LLDPReceive": {
                "ChassisId": nic.switch,
                "PortId": nic.port,
                "SystemName": nic.switch,
            },
        },
        Status=OK,
    )


# Sensors: what they read follows the power state, and breathes a little with time.


def _readings(bmc: Bmc) -> Iterator[tuple[str, str, float, str]]:
    on = bmc.machine.is_on
    wave = math.sin(time.time() / 60 + bmc.facts.slot)
    yield "Inlet_Temp", "Temperature", 22 + wave, "Cel"
    for name in bmc.cpus():
        yield f"{name}_Temp", "Temperature", (48 if on else 23) + 2 * wave, "Cel"
    for name, _ in bmc.gpus():
        yield f"{name}_Temp", "Temperature", (34 if on else 23) + 2 * wave, "Cel"
    for name in FANS:
        yield f"{name}_Speed", "Rotational", (8400 if on else 0) + (60 * wave if on else 0), "RPM"
    for name in PSUS:
        yield f"{name}_Input", "Power", _watts(bmc) / len(PSUS), "W"


def _watts(bmc: Bmc) -> float:
    return 420.0 + 70.0 * len(bmc.gpus()) if bmc.machine.is_on else 18.0


def sensors(bmc: Bmc) -> Json:
    names = (name for name, *_ in _readings(bmc))
    return collection(f"{bmc.chassis}/Sensors", "Sensor", names)


def sensor(bmc: Bmc, name: str) -> Json | None:
    for other, kind, value, units in _readings(bmc):
        if other == name:
            return resource(
                f"{bmc.chassis}/Sensors/{name}",
                "Sensor.v1_9_0",
                name.replace("_", " "),
                ReadingType=kind,
                Reading=round(value, 1),
                ReadingUnits=units,
                Status=OK,
            )
    return None


def power_subsystem(bmc: Bmc) -> Json:
    path = f"{bmc.chassis}/PowerSubsystem"
    return resource(
        path,
        "PowerSubsystem.v1_1_1",
        "Power Subsystem",
        CapacityWatts=5600.0,
        PowerSupplies=ref(f"{path}/PowerSupplies"),
        Status=OK,
    )


def power_supplies(bmc: Bmc) -> Json:
    return collection(f"{bmc.chassis}/PowerSubsystem/PowerSupplies", "PowerSupply", PSUS)


def power_supply(bmc: Bmc, name: str) -> Json | None:
    if name not in PSUS:
        return None
    return resource(
        f"{bmc.chassis}/PowerSubsystem/PowerSupplies/{name}",
        "PowerSupply.v1_5_1",
        name,
        PowerSupplyType="AC",
        PowerCapacityWatts=2800.0,
        LineInputStatus="Normal",
        Status=OK,
    )


def thermal_subsystem(bmc: Bmc) -> Json:
    path = f"{bmc.chassis}/ThermalSubsystem"
    return resource(path, "ThermalSubsystem.v1_2_1", "Thermal Subsystem", Status=OK)


def power(bmc: Bmc) -> Json:
    """The older schema, which clients still read."""
    path = f"{bmc.chassis}/Power"
    supplies = [
        {
            "@odata.id": f"{path}#/PowerSupplies/{index}",
            "MemberId": str(index),
            "Name": name,
            "PowerCapacityWatts": 2800,
            "LastPowerOutputWatts": _watts(bmc) / len(PSUS),
            "Status": OK,
        }
        for index, name in enumerate(PSUS)
    ]
    control = {
        "@odata.id": f"{path}#/PowerControl/0",
        "MemberId": "0",
        "Name": "System Power Control",
        "PowerConsumedWatts": _watts(bmc),
    }
    content = {"PowerControl": [control], "PowerSupplies": supplies}
    return resource(path, "Power.v1_7_1", "Power", **content)


def thermal(bmc: Bmc) -> Json:
    """The older schema, which clients still read."""
    path = f"{bmc.chassis}/Thermal"
    temperatures: list[Json] = []
    fans: list[Json] = []
    for name, kind, value, _ in _readings(bmc):
        target = {"Temperature": temperatures, "Rotational": fans}.get(kind)
        if target is None:
            continue
        entry: Json = {"MemberId": str(len(target)), "Name": name, "Status": OK}
        if kind == "Temperature":
            entry |= {"ReadingCelsius": round(value, 1), "UpperThresholdCritical": 95}
        else:
            entry |= {"Reading": round(value), "ReadingUnits": "RPM"}
        target.append(entry)
    return resource(path, "Thermal.v1_7_1", "Thermal", Temperatures=temperatures, Fans=fans)


def root(bmc: Bmc) -> Json:
    return {
        **resource(ROOT, "ServiceRoot.v1_16_0", "Root Service"),
        "Id": "RootService",
        "RedfishVersion": "1.18.0",
        "UUID": bmc.facts.uuid,
        "Vendor": bmc.names.vendor,
        "Product": bmc.names.product,
        "Systems": ref(f"{ROOT}/Systems"),
        "Chassis": ref(f"{ROOT}/Chassis"),
        "Managers": ref(f"{ROOT}/Managers"),
        "SessionService": ref(f"{ROOT}/SessionService"),
        "AccountService": ref(f"{ROOT}/AccountService"),
        "EventService": ref(f"{ROOT}/EventService"),
        "Links": {"Sessions": ref(f"{ROOT}/SessionService/Sessions")},
        "ProtocolFeaturesSupported": {
            "ExpandQuery": {"ExpandAll": False, "Levels": False, "Links": False, "NoLinks": False},
            "FilterQuery": False,
            "OnlyMemberQuery": False,
            "SelectQuery": False,
        },
    }
