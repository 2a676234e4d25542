"""The conformance suite over the pack metric."""

from __future__ import annotations

from pathlib import Path

from oprack.testing import Conformance, Limitation


class TestMetric(Conformance):
    pack = "metric"
    case_files = Path(__file__).parents[3] / "tests/data/cases"
    limitations = [
        Limitation(
            "auc.0015", "feeds [1, 401] for a variable that its program declares as [401]; refused, as any feed"
        ),
    ]
