"""The conformance suite over the pack detection."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance


class TestDetection(Conformance):
    pack = "detection"
    case_files = Path(__file__).parents[3] / "tests/data/cases"
