"""The conformance suite over the pack metric."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oprack.testing import Conformance, OpCase


class TestMetric(Conformance):
    pack = "metric"
    case_files = Path(__file__).parents[3] / "tests/data/cases"


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_accuracy_is_float32_of_scores_of_any_dtype(dtype: str) -> None:
    best, labels = np.array([[0, 1], [2, 3], [1, 0], [3, 2]]), np.array([[1], [0], [1], [2]])
    share = {"Accuracy": np.float32(0.75), "Correct": np.int32(3), "Total": np.int32(4)}
    case = OpCase("accuracy", {"Out": np.ones((4, 2), dtype), "Indices": best, "Label": labels}, outputs=share)
    assert case.check() == []
