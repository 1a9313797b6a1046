"""The protocol core stands alone."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import gpucloud.kubeapi

ALLOWED = ("gpucloud.kubeapi", "jsonpatch", "yaml")


def test_it_imports_neither_apps_nor_lab_nor_django():

    for path in Path(gpucloud.kubeapi.__file__).parent.glob("*.py"):
        found = re.findall(r"^\s*(?:from|import) ([\w.]+)", path.read_text(), re.MULTILINE)
        foreign = {
            name
            for name in found
            if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith(ALLOWED)
        }
        assert not foreign, path.name
