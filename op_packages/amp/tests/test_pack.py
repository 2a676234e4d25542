"""The conformance suite over the pack amp."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance


class TestAmp(Conformance):
    pack = "amp"
    case_files = Path(__file__).parents[3] / "tests/data/cases"
