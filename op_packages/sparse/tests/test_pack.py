"""The sparse pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, collect_cases


class TestSparse(Conformance):
    pack = "sparse"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
    cases = collect_cases(Path(__file__).parent / "cases")
