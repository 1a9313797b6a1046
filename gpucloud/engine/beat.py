"""The beat file by which the supervisor judges that a process lives.

It says nothing of Redis or the database on purpose: a process that waits for them is not hung.
Outside the supervisor (GPUCLOUD_PROCESS unset) every function here does nothing.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

BEAT_SECONDS = 2.0

_started = threading.Lock()


def beat_file() -> Path | None:
    """The file this process touches, or None when nobody supervises it."""
    name, data = os.environ.get("GPUCLOUD_PROCESS"), os.environ.get("GPUCLOUD_DATA")
    if not name or not data:
        return None
    return Path(data) / "run" / f"{name}.beat"


def touch_beat() -> None:
    """Beat once. For loops that beat themselves, so that a hung loop is seen as hung."""
    path = beat_file()
    if path is None:
        return
    # A full disk must not end the process that would report it.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def start_beat() -> None:
    """Beat every two seconds from a daemon thread; later calls in the same process do nothing.

    Threads do not survive a fork: call it in the process that GPUCLOUD_PROCESS names.
    """
    if beat_file() is None or not _started.acquire(blocking=False):
        return
    touch_beat()
    threading.Thread(target=_beat_forever, name="beat", daemon=True).start()


def _beat_forever() -> None:
    pause = threading.Event()
    while True:
        touch_beat()
        pause.wait(BEAT_SECONDS)
