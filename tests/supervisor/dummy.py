"""A supervisor over dummy processes, run by the tests as a program of its own.

usage: dummy.py <data folder> <kind>…   kinds: steady, hung, family, stubborn
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gpucloud.supervisor.child import Patience, Process
from gpucloud.supervisor.core import Refused, Stopped, Supervisor, refuse, say

BEAT = (
    "import signal, subprocess, sys, time\n"
    "from gpucloud.engine.beat import start_beat, touch_beat\n"
)
KINDS = {
    "steady": "start_beat(); time.sleep(600)",
    # Beats once, then never again.
    "hung": "touch_beat(); time.sleep(600)",
    # A grandchild that ignores the end of its parent.
    "family": (
        "start_beat()\n"
        "deaf = 'import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)'\n"
        "subprocess.Popen([sys.executable, '-c', deaf]); time.sleep(600)"
    ),
    "stubborn": "signal.signal(15, signal.SIG_IGN); start_beat(); time.sleep(600)",
}


def main() -> int:
    data = Path(sys.argv[1]).resolve()
    env = {**os.environ, "GPUCLOUD_DATA": str(data)}
    patience = Patience(start=0.5, silence=1.0, stop=1.0)
    if "hung" not in sys.argv:
        patience = Patience(start=30, silence=30, stop=1.0)
    try:
        with Supervisor(data, env, patience) as supervisor:
            supervisor.start(
                Process(kind, (sys.executable, "-c", BEAT + KINDS[kind]), stage=number)
                for number, kind in enumerate(sys.argv[2:])
            )
            supervisor.wait_ready(10)
            say("ready")
            supervisor.forever()
    except Refused as refused:
        return refuse(refused)
    except Stopped:
        say("stopped")
    return 0


sys.exit(main())
