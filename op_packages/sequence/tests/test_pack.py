"""The sequence pack against the conformance suite."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance


class TestSequence(Conformance):
    pack = "sequence"
    case_files = Path(__file__).parents[3] / "tests" / "data" / "cases"
