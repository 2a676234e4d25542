"""Its kernels take the place of those of the math pack, and give the same; its pass keeps numbers that exp loses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oprack
import pytest
from oprack.runtime import Profiler
from oprack.testing import OpCase, PassCase, check_passes, collect_cases

CASES = collect_cases(Path(__file__).parent / "cases")


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case(case: OpCase) -> None:
    assert case.check() == []


@pytest.mark.parametrize("op_type", ["erf", "lgamma", "digamma"])
def test_its_kernel_is_preferred_to_the_plain_one(op_type: str) -> None:
    with Profiler() as profiler:
        getattr(oprack.functional, op_type)(oprack.to_tensor(np.float32([0.5, 2.0])))
    (row,) = [row for row in profiler.by_op() if row["op"] == op_type]
    assert row["calls"] == 1
    specs = oprack.default_manager().kernel_map(op_type, "cpu")
    assert max(specs, key=lambda spec: spec.priority).library == "scipy_special"


def _log_sum_exp(x: np.ndarray, **attrs: object) -> PassCase:
    ops = [
        ("exp", {"X": "x"}, {"Out": "powers"}),
        ("reduce_sum", {"X": "powers"}, {"Out": "sum"}, attrs),
        ("log", {"X": "sum"}, {"Out": "y"}),
    ]
    return PassCase({"x": x}, {}, ops)


@pytest.mark.parametrize("attrs", [{"dim": [1]}, {"dim": [0, 1], "keep_dim": True}, {"reduce_all": True}])
def test_the_pass_gives_the_same_numbers(attrs: dict[str, object]) -> None:
    case = _log_sum_exp(np.random.default_rng(0).normal(size=(3, 4)).astype("float32"), **attrs)
    optimized = check_passes(case, "fuse_log_sum_exp", rtol=1e-5, atol=1e-6)
    assert [op.type for op in optimized.program.blocks[0].ops] == ["logsumexp"]


def test_what_overflowed_does_not_any_more() -> None:
    program, scope = _log_sum_exp(np.float32([[1000.0, 1000.0]]), dim=[1]).build()
    from oprack.ir import find_pass, optimize

    left = optimize(program.desc, scope, keep=["y"], passes=[find_pass("fuse_log_sum_exp")])
    (y,) = oprack.Executor().run(left.program, {"x": np.float32([[1000.0, 1000.0]])}, ["y"], scope)
    np.testing.assert_allclose(y, [1000 + np.log(2)], rtol=1e-6)


def test_a_sum_of_another_dtype_is_left_alone() -> None:
    case = _log_sum_exp(np.float32([[1.0, 2.0]]), dim=[1], out_dtype=6)  # float64
    optimized = check_passes(case, "fuse_log_sum_exp")
    assert len(optimized.program.blocks[0].ops) == 3
