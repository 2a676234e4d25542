"""oneDNN's library on libgomp's threads, as its wheel has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from oprack_onednn.c import build as build_runner


def plain_library() -> Path:
    """Its file, or a skipped test where the wheel is not installed."""
    found = build_runner.installed(build_runner._WHEEL, build_runner._FILE)
    if found is None:
        pytest.skip("onednn-cpu-gomp is not installed")
    return found
