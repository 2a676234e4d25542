"""Runs a script of calls of Paddle whose `import paddle` the plugin serves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def served(script: Path, out: Path, timeout: int) -> Path:
    """Run a script that writes the results of its calls to a file; returns the file. timeout: Seconds."""
    command = [sys.executable, "-m", "oprack_paddle", "--force", str(script), str(out)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert found.returncode == 0, found.stderr
    return out
