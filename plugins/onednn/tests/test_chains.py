"""Chains of element-wise ops become one primitive, and compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.runtime import Executor
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack_nn.ops.post_ops import ACTIVATIONS
from oprack_onednn.kernels import eltwise

PASS = "onednn_chain_eltwise"
CLOSE = dict(rtol=2e-6, atol=2e-6)


def chain(*ops, shape=(64, 80)):
    """x through ops of one input, (type, attrs)."""
    made = []
    for i, (op_type, attrs) in enumerate(ops):
        slots = ("X", "Y") if op_type == "elementwise_add" else ("X",)
        made.append((op_type, dict.fromkeys(slots, f"y{i}"), {"Out": f"y{i + 1}"}, attrs))
    return PassCase({"y0": np.random.default_rng(3).standard_normal(shape, dtype=np.float32)}, {}, made)


@pytest.fixture(autouse=True)
def no_steps(monkeypatch):
    """oneDNN itself computes the chains."""
    monkeypatch.setattr(eltwise, "after", None)


def test_every_activation_has_its_place_in_a_chain():
    ops = [(name, {}) for name in ACTIVATIONS if name != "scale"] + [("scale", {"scale": 0.5, "bias": 0.25})]
    case = chain(*ops)
    optimized = check_passes(case, PASS, **CLOSE)
    assert op_types(optimized) == ["onednn_eltwise"]
    program, scope = case.build()
    (plain,) = Executor(excluded_libraries=["onednn"]).run(program, case.feeds, case.fetches(), scope)
    for _ in range(3):
        (y,) = Executor().run(optimized.program, case.feeds, case.fetches(), scope)
        np.testing.assert_allclose(y, plain, **CLOSE)


def test_without_onednn_the_functions_run_one_by_one(monkeypatch):
    monkeypatch.undo()
    case = chain(*((name, {}) for name in ACTIVATIONS))
    optimized = check_passes(case, PASS, **CLOSE)
    program, scope = case.build()
    executor = Executor(excluded_libraries=["onednn"])
    plain, fused = (executor.run(p, case.feeds, case.fetches(), scope)[0] for p in (program, optimized.program))
    assert (plain == fused).all()


def test_a_sum_of_a_tensor_with_itself_is_a_scale():
    optimized = check_passes(chain(("elementwise_add", {}), ("relu", {}), ("elementwise_add", {})), PASS, **CLOSE)
    (op,) = optimized.program.blocks[0].ops
    assert op.attrs["post_ops"] == ["scale 2.0 0.0 1.0", "relu", "scale 2.0 0.0 1.0"]


def test_long_chains_are_cut():
    ops = [("scale", {"scale": 0.5}), ("relu", {}), ("elementwise_add", {})] * 30
    assert op_types(check_passes(chain(*ops, shape=(4, 8)), PASS, **CLOSE)) == ["onednn_eltwise"] * 3


def test_a_few_ops_on_a_small_array_stay():
    few = [("relu", {}), ("scale", {"scale": 0.5})]
    assert op_types(check_passes(chain(*few, shape=(4, 8)), PASS, **CLOSE)) == ["relu", "scale"]
    assert op_types(check_passes(chain(*few), PASS, **CLOSE)) == ["onednn_eltwise"]


def test_what_is_read_elsewhere_ends_a_chain():
    case = chain(("relu", {}), ("sigmoid", {}), ("tanh", {}), ("relu", {}))
    case.ops.append(("elementwise_mul", {"X": "y2", "Y": "y4"}, {"Out": "z"}, {}))
    kinds = op_types(check_passes(case, PASS, **CLOSE))
    assert kinds == ["onednn_eltwise", "onednn_eltwise", "elementwise_mul"]


def test_an_empty_tensor(monkeypatch):
    monkeypatch.undo()
    optimized = check_passes(chain(("relu", {}), ("tanh", {}), shape=(0, 5000)), PASS, **CLOSE)
    assert op_types(optimized) == ["onednn_eltwise"]
