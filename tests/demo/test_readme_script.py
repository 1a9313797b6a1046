"""The README's script does the whole main job as it stands there."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.demo.cloud import ROOT, Cloud
from tests.demo.test_main_job import SEEDS, free_port

pytestmark = pytest.mark.demo


def test_the_script_of_the_readme_brings_a_cluster_up_and_its_servers_back(tmp_path):
    script = re.search(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(), re.S).group(1)
    cloud = Cloud(tmp_path / "data", free_port())
    cloud.start()
    try:
        cloud.until("the rack available", lambda: cloud.servers_available(*SEEDS), 90)
        env = {**os.environ, "PORT": str(cloud.port), "GPUCLOUD_DATA": str(cloud.data)}
        done = subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "bare-metal-2" in done.stdout and "Ready" in done.stdout
        assert cloud.servers_available("bare-metal-1", "bare-metal-2")
    finally:
        cloud.stop()
