"""Redfish resources below Systems: the computer, its processors, NICs, media, log."""

from __future__ import annotations

from typing import Any

from gpucloud.lab.hardware.bmc.bmc import Bmc
from gpucloud.lab.hardware.bmc.parts import OK, Json, collection, ref, refs, resource
from gpucloud.lab.hardware.server import MEDIA_SLOTS

RESETS = ["On", "ForceOff", "GracefulShutdown", "ForceRestart"]
BOOT_TARGETS = ["None", "Pxe", "Cd", "Hdd"]
BOOT_ENABLED = ["Disabled", "Once", "Continuous"]
BOOT_MODES = ["UEFI", "Legacy"]
LEDS = ["Lit", "Blinking", "Off"]
DIMM_GIB = 64


def system(bmc: Bmc) -> Json:
    path, facts, memory = bmc.system, bmc.facts, bmc.memory
    below = (
        "Processors",
        "Memory",
        "EthernetInterfaces",
        "Storage",
        "LogServices",
        "VirtualMedia",
        "SecureBoot",
    )
    return resource(
        path,
        "ComputerSystem.v1_20_0",
        "System",
        SystemType="Physical",
        UUID=facts.uuid,
        # A Dell's service tag stands in SKU, its serial number is the board's.
        SKU=facts.serial if facts.is_dell else "965-24387-0002-003",
        SerialNumber=facts.serial,
        Manufacturer=facts.vendor,
        Model=facts.model,
        AssetTag=memory.asset_tag,
        HostName="",
        BiosVersion=facts.bios_version,
        PowerState=memory.power,
        IndicatorLED=memory.led,
        LocationIndicatorActive=memory.led != "Off",
        Status={**OK, "State": "Enabled" if bmc.machine.is_on else "StandbyOffline"},
        ProcessorSummary={
            "Count": len(facts.processors),
            "CoreCount": sum(processor.cores for processor in facts.processors),
            "LogicalProcessorCount": sum(processor.threads for processor in facts.processors),
            "Model": facts.processors[0].model,
            "Status": OK,
        },
        MemorySummary={"TotalSystemMemoryGiB": facts.memory_gib, "Status": OK},
        Boot=_boot(memory),
        BootProgress={
            "LastState": bmc.machine.progress,
            "LastStateTime": bmc.machine.progress_at,
        },
        PCIeDevices=refs(f"{path}/PCIeDevices/{name}" for name, _ in bmc.gpus()),
        Links={"Chassis": refs([bmc.chassis]), "ManagedBy": refs([bmc.manager])},
        Actions={
            "#ComputerSystem.Reset": {
                "target": f"{path}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": RESETS,
            }
        },
        **{name: ref(f"{path}/{name}") for name in below},
    )


def _boot(memory: Any) -> Json:
    return {
        "BootSourceOverrideEnabled": memory.boot_enabled,
        "BootSourceOverrideEnabled@Redfish.AllowableValues": BOOT_ENABLED,
        "BootSourceOverrideTarget": memory.boot_target,
        "BootSourceOverrideTarget@Redfish.AllowableValues": BOOT_TARGETS,
        "BootSourceOverrideMode": memory.boot_mode,
        "BootSourceOverrideMode@Redfish.AllowableValues": BOOT_MODES,
    }


def processors(bmc: Bmc) -> Json:
    names = [*bmc.cpus(), *(name for name, _ in bmc.gpus())]
    return collection(f"{bmc.system}/Processors", "Processor", names)


def processor(bmc: Bmc, name: str) -> Json | None:
    path = f"{bmc.system}/Processors/{name}"
    for other, gpu in bmc.gpus():
        if other == name:
            return resource(
                path,
                "Processor.v1_18_0",
                name,
                ProcessorType="GPU",
                Manufacturer="NVIDIA",
                Model=gpu.model,
                SerialNumber=gpu.serial,
                UUID=gpu.uuid.removeprefix("GPU-"),
                Location={
                    "PartLocation": {
                        "LocationType": "Slot",
                        "LocationOrdinalValue": int(gpu.slot),
                        "ServiceLabel": gpu.slot,
                    }
                },
                ProcessorMemory=[
                    {
                        "IntegratedMemory": True,
                        "MemoryType": "HBM3" if "HBM3" in gpu.model else "GDDR6",
                        "CapacityMiB": gpu.memory_bytes >> 20,
                    }
                ],
                EnvironmentMetrics=ref(f"{path}/EnvironmentMetrics"),
                Links={"PCIeDevice": ref(f"{bmc.system}/PCIeDevices/{name}")},
                Status=OK,
            )
    if name not in bmc.cpus():
        return None
    cpu = bmc.facts.processors[bmc.cpus().index(name)]
    return resource(
        path,
        "Processor.v1_18_0",
        name,
        ProcessorType="CPU",
        ProcessorArchitecture="x86",
        InstructionSet="x86-64",
        Manufacturer="Intel",
        Model=cpu.model,
        Socket=name,
        MaxSpeedMHz=4000,
        TotalCores=cpu.cores,
        TotalThreads=cpu.threads,
        Status=OK,
    )


def gpu_environment(bmc: Bmc, name: str) -> Json | None:
    if name not in dict(bmc.gpus()):
        return None
    on = bmc.machine.is_on
    return resource(
        f"{bmc.system}/Processors/{name}/EnvironmentMetrics",
        "EnvironmentMetrics.v1_3_0",
        f"{name} Environment",
        TemperatureCelsius={"Reading": 34.0 if on else None},
        PowerWatts={"Reading": 71.0 if on else 0.0},
    )


def memory(bmc: Bmc) -> Json:
    return collection(f"{bmc.system}/Memory", "Memory", _dimms(bmc))


def dimm(bmc: Bmc, name: str) -> Json | None:
    if name not in _dimms(bmc):
        return None
    return resource(
        f"{bmc.system}/Memory/{name}",
        "Memory.v1_17_0",
        name,
        MemoryType="DRAM",
        MemoryDeviceType="DDR5",
        BaseModuleType="RDIMM",
        CapacityMiB=DIMM_GIB * 1024,
        OperatingSpeedMhz=4800,
        ErrorCorrection="MultiBitECC",
        DeviceLocator=name,
        Status=OK,
    )


def _dimms(bmc: Bmc) -> list[str]:
    return [f"DIMM.{index + 1}" for index in range(bmc.facts.memory_gib // DIMM_GIB)]


def interfaces(bmc: Bmc) -> Json:
    names = (name for name, _ in bmc.nics())
    return collection(f"{bmc.system}/EthernetInterfaces", "EthernetInterface", names)


def interface(bmc: Bmc, name: str) -> Json | None:
    nic = dict(bmc.nics()).get(name)
    if nic is None:
        return None
    return resource(
        f"{bmc.system}/EthernetInterfaces/{name}",
        "EthernetInterface.v1_12_0",
        nic.name,
        EthernetInterfaceType="Physical",
        MACAddress=nic.mac.upper(),
        PermanentMACAddress=nic.mac.upper(),
        SpeedMbps=nic.speed_mbps,
        LinkStatus="LinkUp",
        InterfaceEnabled=True,
        Links={"Chassis": ref(bmc.chassis)},
        Status=OK,
    )


def pcie_devices(bmc: Bmc) -> Json:
    names = (name for name, _ in bmc.gpus())
    return collection(f"{bmc.system}/PCIeDevices", "PCIeDevice", names)


def pcie_device(bmc: Bmc, name: str) -> Json | None:
    gpu = dict(bmc.gpus()).get(name)
    if gpu is None:
        return None
    return resource(
        f"{bmc.system}/PCIeDevices/{name}",
        "PCIeDevice.v1_13_0",
        name,
        DeviceType="SingleFunction",
        Manufacturer="NVIDIA",
        Model=gpu.model,
        SerialNumber=gpu.serial,
        PCIeInterface={"LanesInUse": 16, "PCIeType": "Gen5"},
        Links={
            "Processors": refs([f"{bmc.system}/Processors/{name}"]),
            "Chassis": refs([bmc.chassis]),
        },
        Status=OK,
    )


def virtual_media(bmc: Bmc) -> Json:
    return collection(f"{bmc.system}/VirtualMedia", "VirtualMedia", MEDIA_SLOTS)


def media_slot(bmc: Bmc, name: str) -> Json | None:
    if name not in MEDIA_SLOTS:
        return None
    path = f"{bmc.system}/VirtualMedia/{name}"
    image = bmc.memory.media.get(name)
    return resource(
        path,
        "VirtualMedia.v1_6_0",
        f"Virtual {name}",
        MediaTypes=["CD", "DVD"] if name == "Cd" else ["USBStick"],
        Image=image,
        ImageName=image.rpartition("/")[2] if image else None,
        Inserted=image is not None,
        ConnectedVia="URI" if image else "NotConnected",
        WriteProtected=True,
        VerifyCertificate=False,
        Actions={
            f"#VirtualMedia.{verb}": {"target": f"{path}/Actions/VirtualMedia.{verb}"}
            for verb in ("InsertMedia", "EjectMedia")
        },
    )


def secure_boot(bmc: Bmc) -> Json:
    current = "Enabled" if bmc.memory.secure_boot_current else "Disabled"
    return resource(
        f"{bmc.system}/SecureBoot",
        "SecureBoot.v1_1_0",
        "UEFI Secure Boot",
        SecureBootEnable=bmc.memory.secure_boot,
        SecureBootCurrentBoot=current,
        SecureBootMode="DeployedMode",
    )


def log_services(bmc: Bmc) -> Json:
    return collection(f"{bmc.system}/LogServices", "LogService", ["SEL"])


def log_service(bmc: Bmc) -> Json:
    path = f"{bmc.system}/LogServices/SEL"
    return resource(
        path,
        "LogService.v1_4_0",
        "System Event Log",
        LogEntryType="SEL",
        OverWritePolicy="WrapsWhenFull",
        ServiceEnabled=True,
        Entries=ref(f"{path}/Entries"),
        Actions={"#LogService.ClearLog": {"target": f"{path}/Actions/LogService.ClearLog"}},
        Status=OK,
    )


def log_entries(bmc: Bmc) -> Json:
    path = f"{bmc.system}/LogServices/SEL/Entries"
    entries = [_log_entry(path, entry) for entry in reversed(bmc.memory.log)]
    return {**collection(path, "LogEntry", ()), "Members": entries, **_count(entries)}


def log_entry(bmc: Bmc, name: str) -> Json | None:
    path = f"{bmc.system}/LogServices/SEL/Entries"
    found = (entry for entry in bmc.memory.log if entry["id"] == name)
    return next((_log_entry(path, entry) for entry in found), None)


def _log_entry(path: str, entry: Json) -> Json:
    return resource(
        f"{path}/{entry['id']}",
        "LogEntry.v1_15_0",
        f"Log entry {entry['id']}",
        EntryType="SEL",
        Created=entry["at"],
        Severity=entry["severity"],
        SensorType=entry["sensor"],
        Message=entry["message"],
    )


def _count(entries: list[Json]) -> Json:
    return {"Members@odata.count": len(entries)}
