"""What each step of an operation does when it is looked at once:

step name -> function(operation, step) -> Progress.
"""

from __future__ import annotations

from collections.abc import Callable

from gpucloud.drivers import Progress
from gpucloud.models import Step
from provisioning.models import Operation
from provisioning.steps import cleaning, homeward, install, joining, selecting

Run = Callable[[Operation, Step], Progress]

STEPS: dict[str, Run] = {
    "select": selecting.select_server,
    "configure": joining.configure,
    "setup": install.setup,
    "install": install.install,
    "stop": install.stop,
    "move": joining.move_to_tenant,
    "boot": joining.boot,
    "join": joining.join,
    "verify": joining.verify,
    "drain": homeward.drain,
    "return": homeward.go_home,
    "deprovision": homeward.deprovision,
    "wipe": cleaning.wipe,
    "check": cleaning.check,
    "inspect": selecting.inspect,
}
