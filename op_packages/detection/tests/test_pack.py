"""The conformance suite over the pack detection."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, collect_cases


class TestDetection(Conformance):
    pack = "detection"
    case_files = Path(__file__).parents[3] / "tests/data/cases"
    cases = collect_cases(Path(__file__).parent / "cases")
