"""The conformance suite over the pack vision."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance


class TestVision(Conformance):
    pack = "vision"
    case_files = Path(__file__).parents[3] / "tests/data/cases"
