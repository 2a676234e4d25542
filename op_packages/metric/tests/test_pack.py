"""The conformance suite over the pack metric."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance


class TestMetric(Conformance):
    pack = "metric"
    case_files = Path(__file__).parents[3] / "tests/data/cases"
