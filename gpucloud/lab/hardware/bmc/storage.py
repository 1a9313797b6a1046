"""Redfish resources of the drives; a pulled drive is not among them."""

from __future__ import annotations

from gpucloud.lab.hardware.bmc.bmc import Bmc
from gpucloud.lab.hardware.bmc.parts import OK, Json, collection, ref, refs, resource


def storages(bmc: Bmc) -> Json:
    return collection(f"{bmc.system}/Storage", "Storage", [bmc.names.storage])


def storage(bmc: Bmc, name: str) -> Json | None:
    if name != bmc.names.storage:
        return None
    path = f"{bmc.system}/Storage/{name}"
    drives = refs(f"{path}/Drives/{drive}" for drive, _ in bmc.drives())
    return resource(
        path,
        "Storage.v1_15_0",
        "NVMe backplane",
        Drives=drives,
        **{"Drives@odata.count": len(drives)},
        StorageControllers=[
            {
                "@odata.id": f"{path}#/StorageControllers/0",
                "MemberId": "0",
                "Name": "PCIe SSD",
                "SupportedDeviceProtocols": ["NVMe"],
                "Status": OK,
            }
        ],
        Volumes=ref(f"{path}/Volumes"),
        Status=OK,
    )


def volumes(bmc: Bmc, name: str) -> Json | None:
    if name != bmc.names.storage:
        return None
    return collection(f"{bmc.system}/Storage/{name}/Volumes", "Volume", ())


def drive(bmc: Bmc, storage_name: str, name: str) -> Json | None:
    found = dict(bmc.drives()).get(name)
    if storage_name != bmc.names.storage or found is None:
        return None
    return resource(
        f"{bmc.system}/Storage/{storage_name}/Drives/{name}",
        "Drive.v1_17_0",
        found.name,
        SerialNumber=found.serial,
        Model=found.model,
        Manufacturer=found.model.partition(" ")[0].title(),
        CapacityBytes=found.capacity_bytes,
        BlockSizeBytes=512,
        Protocol=found.protocol,
        MediaType=found.media,
        Revision="GDC5602Q",
        PredictedMediaLifeLeftPercent=98,
        FailurePredicted=False,
        PhysicalLocation={"PartLocation": {"LocationType": "Bay", "ServiceLabel": name}},
        Links={"Chassis": ref(bmc.chassis), "Volumes": []},
        Status=OK,
    )
