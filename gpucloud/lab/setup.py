"""Makes what is missing of the lab's rack, secrets, images and doors; existing things stay."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import random
import secrets
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from gpucloud.lab.place import data_dir, port_of, read_json, write_atomically, write_json
from gpucloud.lab.tls import make_ca

# Below the kernel's ephemeral range (32768 and up): a door kept for ever must not be taken by
# somebody's outgoing connection while the lab is down.
FIRST_PORT, LAST_PORT = 20000, 32000

OWN_RACK = Path(__file__).with_name("rack.json")


def main() -> None:
    data = data_dir()
    lab = data / "lab"
    lab.mkdir(parents=True, exist_ok=True)
    rack = _rack(lab / "rack.json")
    _credentials(lab / "credentials.json", rack)
    _secret_file(lab / "token")
    make_ca(lab / "kube" / "ca.crt", lab / "kube" / "ca.key", "gpucloud lab CA")
    _images(lab / "images", rack)
    doors = open_doors(data, _wanted_doors(rack))
    _kubeconfig(lab / "kube", doors["kube"])


def open_doors(data: Path, wanted: dict[str, str]) -> dict[str, str]:
    """Give each wanted door (name: scheme) a free port and keep all of them in `doors.json`."""
    path = data / "doors.json"
    data.mkdir(parents=True, exist_ok=True)
    with (data / "doors.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        doors: dict[str, str] = read_json(path) if path.exists() else {}
        missing = {name: scheme for name, scheme in wanted.items() if name not in doors}
        taken = {port_of(url) for url in doors.values()}
        for (name, scheme), port in zip(
            missing.items(), _free_ports(len(missing), taken), strict=True
        ):
            doors[name] = f"{scheme}://127.0.0.1:{port}"
        if missing:
            # 0600: another door's URL may hold a password.
            write_json(path, doors, 0o600)
    return doors


def _free_ports(count: int, taken: Iterable[int]) -> list[int]:
    avoid = set(taken)
    found: list[int] = []
    candidates = list(range(FIRST_PORT, LAST_PORT))
    random.SystemRandom().shuffle(candidates)
    for port in candidates:
        if len(found) == count:
            break
        if port not in avoid and _is_free(port):
            found.append(port)
    if len(found) < count:
        raise SystemExit(f"only {len(found)} of {count} free ports found on 127.0.0.1")
    return found


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _wanted_doors(rack: dict[str, Any]) -> dict[str, str]:
    wanted = {"lab": "http", "images": "http", "ironic": "http", "kube": "https"}
    wanted |= {f"switch-{switch['name']}": "https" for switch in rack["switches"]}
    wanted |= {f"bmc-{server['name']}": "https" for server in rack["servers"]}
    return wanted


def _rack(path: Path) -> dict[str, Any]:
    if not path.exists():
        source = Path(os.environ.get("LAB_RACK") or OWN_RACK)
        write_atomically(path, source.read_bytes())
    rack: dict[str, Any] = read_json(path)
    return rack


def _credentials(path: Path, rack: dict[str, Any]) -> None:
    known: dict[str, dict[str, Any]] = read_json(path) if path.exists() else {}
    before = repr(known)
    bmcs, switches = known.setdefault("bmc", {}), known.setdefault("switch", {})
    for server in rack["servers"]:
        bmcs.setdefault(server["name"], _login("admin"))
    for switch in rack["switches"]:
        switches.setdefault(switch["name"], _login("cumulus"))
    if repr(known) != before:
        write_json(path, known, 0o600)


def _login(username: str) -> dict[str, str]:
    return {"username": username, "password": secrets.token_urlsafe(15)}


def _secret_file(path: Path) -> None:
    if not path.exists():
        write_atomically(path, secrets.token_urlsafe(32) + "\n", 0o600)


def _images(folder: Path, rack: dict[str, Any]) -> None:
    for image in rack["images"]:
        path = folder / image["file"]
        if not path.exists():
            content = hashlib.shake_256(image["name"].encode()).digest(image["bytes"])
            write_atomically(path, content)
        checksum = path.with_name(path.name + ".sha256")
        if not checksum.exists():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            write_atomically(checksum, f"{digest}  {path.name}\n")


def _kubeconfig(folder: Path, server: str) -> None:
    path = folder / "kubeconfig"
    if path.exists():
        return
    authority = base64.b64encode((folder / "ca.crt").read_bytes()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "lab", "cluster": {"server": server, "certificate-authority-data": authority}}
        ],
        "users": [{"name": "gpucloud", "user": {"token": secrets.token_urlsafe(32)}}],
        "contexts": [
            {
                "name": "lab",
                "context": {"cluster": "lab", "user": "gpucloud", "namespace": "default"},
            }
        ],
        "current-context": "lab",
    }
    write_atomically(path, yaml.safe_dump(config, sort_keys=False), 0o600)


if __name__ == "__main__":
    main()
