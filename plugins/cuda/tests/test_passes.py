"""Passes for place cuda: programs compute the same, at place cpu and over strict arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack.ir import optimize, select_passes
from oprack.packs.manager import default_manager
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack_cuda.graphs import capturable_ops
from oprack_cuda.ops.bias_act import ACTIVATIONS
from oprack_cuda.testing import OpWatch, strict_executor
from oprack_cuda.testing.survey import OWN


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape, dtype=np.float32)


def case(act: str, x: tuple[int, ...], bias: tuple[int, ...], axis: int, attrs: Any = None) -> PassCase:
    add = ("elementwise_add", {"X": "x", "Y": "b"}, {"Out": "y"}, {"axis": axis})
    return PassCase({"x": normal(*x)}, {"b": normal(*bias)}, [add, (act, {"X": "y"}, {"Out": "z"}, attrs or {})])


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_every_activation(act: str, emulated: None) -> None:
    given = case(act, (2, 5, 3, 4), (5,), 1)
    optimized = check_passes(given, "cuda_fuse_bias_act", rtol=1e-6, atol=1e-6)
    assert op_types(optimized) == ["cuda_bias_act"]
    program, scope = given.build()
    (want,) = oprack.Executor().run(program, given.feeds, ["z"], scope)
    for excluded in ((), ("cuda",)):
        executor = strict_executor(excluded_libraries=excluded)
        (got,) = executor.run(optimized.program, given.feeds, ["z"], given.build()[1])
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("x", "bias", "axis"),
    [((4, 6), (6,), -1), ((2, 3, 6), (6,), 2), ((2, 5, 3, 4), (1, 5, 1, 1), -1), ((2, 5, 3), (5, 1), -1)],
)
def test_biases_in_every_shape(x: tuple[int, ...], bias: tuple[int, ...], axis: int) -> None:
    optimized = check_passes(case("relu", x, bias, axis), "cuda_fuse_bias_act", rtol=1e-6, atol=1e-6)
    assert op_types(optimized) == ["cuda_bias_act"]


@pytest.mark.parametrize(
    ("x", "bias", "axis"), [((2, 5, 3), (5, 3), -1), ((2, 5, 3), (1,), -1), ((2, 5, 3), (2, 5, 3), -1)]
)
def test_what_is_no_bias_stays(x: tuple[int, ...], bias: tuple[int, ...], axis: int) -> None:
    optimized = check_passes(case("relu", x, bias, axis), "cuda_fuse_bias_act", rtol=1e-6, atol=1e-6)
    assert op_types(optimized) == ["elementwise_add", "relu"]


def test_attributes_are_taken_along() -> None:
    attrs = {"threshold": 5.0, "scale": 4.0, "offset": 2.0}
    optimized = check_passes(case("hard_swish", (2, 5), (5,), -1, attrs), "cuda_fuse_bias_act", rtol=1e-6, atol=1e-6)
    (op,) = optimized.program.blocks[0].ops
    assert op.attrs["numbers"] == [5.0, 4.0, 2.0] and op.attrs["axis"] == 1


def test_it_runs_at_place_cuda_alone(emulated: None) -> None:
    cuda, cpu = oprack.CUDAPlace(0), oprack.CPUPlace()
    names = {place: [p.name for p in select_passes(place)] for place in (cuda, cpu)}
    assert "cuda_fuse_bias_act" in names[cuda] and "cuda_fuse_bias_act" not in names[cpu]
    without = select_passes(cuda, excluded_libraries=("cuda",))
    assert "cuda_fuse_bias_act" not in [p.name for p in without]
    program, scope = case("relu", (2, 5), (5,), -1).build()
    optimized = optimize(program.desc, scope, keep=["z"], place=cpu, manager=default_manager())
    assert "cuda_bias_act" not in op_types(optimized)


def test_ops_of_passes_may_be_recorded(emulated: None) -> None:
    watch = OpWatch()
    given = case("relu", (2, 5, 3), (5,), 1)
    program, scope = given.build()
    optimized = optimize(program.desc, scope, keep=["z"], place=oprack.CUDAPlace(0), manager=default_manager())
    assert set(op_types(optimized)) == set(OWN) <= capturable_ops()
    for excluded in ((), ("cuda",)):
        executor = strict_executor(prepared=False, watch=watch, excluded_libraries=excluded)
        executor.run(optimized.program, given.feeds, ["z"], scope)
        scope = given.build()[1]
    assert watch.ran["cuda_bias_act"] == 2 and not (watch.waited + watch.copied)
