"""The conformance suite over the pack sparse."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance


class TestSparse(Conformance):
    pack = "sparse"
    case_files = Path(__file__).parents[3] / "tests/data/cases"
