"""`python -m gpucloud.supervisor`: the demo in the foreground."""

from __future__ import annotations

import sys

from gpucloud.supervisor.demo import main

sys.exit(main())
