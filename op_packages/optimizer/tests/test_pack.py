"""The conformance suite over the pack optimizer."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance


class TestOptimizer(Conformance):
    pack = "optimizer"
    case_files = Path(__file__).parents[3] / "tests/data/cases"
