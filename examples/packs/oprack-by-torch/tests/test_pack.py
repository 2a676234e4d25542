"""The kernel takes the place of that of the math pack, and gives the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oprack
import pytest
from oprack.runtime import Profiler
from oprack.testing import OpCase, collect_cases

CASES = collect_cases(Path(__file__).parent / "cases")


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case(case: OpCase) -> None:
    assert case.check() == []


def test_the_op_runs_by_torch() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    with Profiler() as profiler:
        oprack.functional.digamma(oprack.to_tensor(np.float32([0.5, 2.0])))
    (row,) = [row for row in profiler.by_op() if row["op"] == "digamma"]
    assert row["calls"] == 1
    specs = oprack.default_manager().kernel_map("digamma", "cpu")
    assert max(specs, key=lambda spec: spec.priority).library == "torch"
