"""Command line: python -m gpucloud_agent --config FILE --hardware fake:DIR."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from gpucloud_agent.door import Door, GaveUp, say
from gpucloud_agent.hardware import open_hardware
from gpucloud_agent.session import run

MARK = "GPUCLOUD-AGENT-CONFIG:1\n"


def read_config(path: str) -> dict[str, Any]:
    """The settings written into the media: door, key, ca; with or without the mark before them."""
    text = Path(path).read_text()
    found: dict[str, Any] = json.loads(text[len(MARK) :] if text.startswith(MARK) else text)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gpucloud_agent", description=__doc__)
    parser.add_argument("--config", required=True, help="file with door, key and ca")
    parser.add_argument("--hardware", required=True, help="fake:<folder>")
    options = parser.parse_args(arguments)
    try:
        config = read_config(options.config)
        hardware = open_hardware(options.hardware)
        proxy = os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY") or ""
        door = Door(config["door"], config["ca"], proxy)
        run(door, hardware, config["key"])
    except GaveUp as error:
        say(f"giving up: {error}")
        return 3
    except (OSError, ValueError, KeyError) as error:
        say(f"cannot start: {type(error).__name__}: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
