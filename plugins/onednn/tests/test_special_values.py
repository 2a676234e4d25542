"""NaN, infinities, the largest and the smallest numbers: oneDNN gives what NumPy gives, alone and inside fused ops."""

from __future__ import annotations

import warnings

import numpy as np
import oprack
import pytest
from oprack.ir import optimize
from oprack.testing import PassCase
from oprack.testing.passes import op_types

NAN, INF, BIG = np.nan, np.inf, 3.3e38
SPECIAL = np.array(
    [NAN, INF, -INF, BIG, -BIG, 1e-40, -1e-40, 0.0, -0.0, 1.0, -1.0, 88.8, -88.8, 20, -20, 2.9, -2.9, 104, -104], "f4"
)
ACTIVATIONS = [
    ("relu", {}),
    ("relu6", {"threshold": 6.0}),
    ("leaky_relu", {"alpha": 0.1}),
    ("leaky_relu", {"alpha": 0.0}),
    ("sigmoid", {}),
    ("tanh", {}),
    ("gelu", {"approximate": True}),
    ("gelu", {"approximate": False}),
    ("swish", {"beta": 1.0}),
    ("silu", {}),
    ("hard_swish", {}),
    ("hard_sigmoid", {"slope": 0.2, "offset": 0.5}),
    ("scale", {"scale": 0.0, "bias": 1.0}),
]


@pytest.fixture(autouse=True)
def quiet(any_size):
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        yield


def both(op_type, x, attrs, out="Out", **inputs):
    """What oneDNN and what NumPy give."""
    results = []
    for excluded in ((), ("onednn",)):
        program = oprack.Program()
        block = program.desc.blocks[0]
        arrays = {"X": x} | inputs
        for name, array in arrays.items():
            block.create_var(name, dtype="float32", shape=[-1] * array.ndim)
        block.create_var("y", dtype="float32")
        block.append_op(op_type, {name: name for name in arrays}, {out: "y"}, attrs)
        executor = oprack.Executor()
        executor.excluded_libraries = frozenset(excluded)
        results += executor.run(program, arrays, ["y"], oprack.Scope())
    return results


def assert_alike(got, want, rtol=1e-4):
    """Equal NaN and infinities, and close numbers; denormals are kept, not made 0."""
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-44 if rtol <= 1e-4 else 1e-6, equal_nan=True)


@pytest.mark.parametrize("op_type, attrs", ACTIVATIONS, ids=str)
def test_activations(op_type, attrs):
    x = np.tile(SPECIAL, 300)
    got, want = both(op_type, x, attrs)
    loose = np.abs(want) < 1e-30  # exp of large numbers is rounded otherwise there
    assert_alike(np.where(loose, 0, got), np.where(loose, 0, want))


@pytest.mark.parametrize("op_type", ["relu6", "hard_sigmoid"])
def test_nan_stays_nan_when_it_is_clipped(op_type):
    x = np.zeros(5000, "f4")
    x[17] = NAN
    got, _ = both(op_type, x, {})
    assert np.isnan(got[17]) and np.isfinite(np.delete(got, 17)).all()


def rows():
    """Rows with special values at one or two places, and rows of nothing else."""
    normal = np.random.default_rng(0).standard_normal((30, 32), dtype=np.float32)
    pairs = [(), (NAN,), (INF,), (-INF,), (INF, INF), (INF, -INF), (NAN, INF), (BIG,), (-BIG,), (BIG, BIG)]
    for row, pair in zip(normal, pairs, strict=False):
        row[[1, 4][: len(pair)]] = pair
    for row, value in zip(normal[len(pairs) :], (NAN, INF, -INF, BIG, -BIG, 1e-40, 0.0, -0.0), strict=False):
        row[:] = value
    return normal


@pytest.mark.parametrize("op_type", ["softmax", "log_softmax"])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("inner", [1, 3])
def test_softmax(op_type, axis, inner):
    x = rows() if inner == 1 else np.repeat(rows()[:, :, None], inner, 2)
    if inner > 1 and axis == -1:
        x = np.ascontiguousarray(x.transpose(0, 2, 1))
    assert_alike(*both(op_type, x, {"axis": axis}), rtol=1e-3)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("ksize, strides, pad", [([2, 2], [2, 2], 0), ([3, 3], [2, 2], 1), ([4, 8], [4, 8], 0)])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_pooling(kind, ksize, strides, pad, layout):
    x = rows().reshape(1, 30, 4, 8)
    x = x if layout == "NCHW" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    attrs = {"pooling_type": kind, "ksize": ksize, "strides": strides, "paddings": [pad, pad], "data_format": layout}
    assert_alike(*both("pool2d", x, attrs), rtol=1e-3)


def test_reductions_and_norms():
    x = rows()
    for op_type in ("reduce_max", "reduce_min", "reduce_sum", "reduce_mean"):
        assert_alike(*both(op_type, x, {"dim": [1]}), rtol=1e-3)
    ones = np.ones(32, "f4")
    norm = {"begin_norm_axis": 1, "epsilon": 1e-5}
    assert_alike(*both("layer_norm", x, norm, "Y", Scale=ones, Bias=ones), rtol=1e-3)


@pytest.mark.parametrize("op_type", ["elementwise_add", "elementwise_mul", "elementwise_sub", "elementwise_max"])
def test_two_operands(op_type):
    x, y = (np.tile(a.reshape(-1), 40).copy() for a in np.meshgrid(SPECIAL, SPECIAL))
    assert_alike(*both(op_type, x, {"axis": -1}, Y=y))


def clipped(op_type, w):
    x = np.ones((1, 8, 9, 9), "f4")
    ops = [
        ("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y"}, {}),
        (op_type, {"X": "y"}, {"Out": "z"}, {}),
    ]
    return PassCase({"x": x}, {"w": w}, ops)


@pytest.mark.parametrize("op_type", ["relu6", "hard_sigmoid", "relu"])
@pytest.mark.parametrize("broken", [False, True])
def test_a_broken_parameter_is_not_hidden(op_type, broken):
    """A clipping post-op makes a plain number of NaN, so a filter that holds one gets none."""
    w = np.ones((8, 8, 1, 1), "f4")
    w[3, 2] = NAN if broken else 1
    program, scope = (case := clipped(op_type, w)).build()
    done = optimize(program.desc, scope, keep=["z"])
    assert op_types(done) == (["conv2d", op_type] if broken and op_type != "relu" else ["conv2d_post_ops"])
    (got,) = oprack.Executor().run(done.program, case.feeds, ["z"], scope)
    assert np.isnan(got[:, 3]).all() == (broken and op_type != "relu")


def test_a_chain_of_functions_keeps_nan():
    x = np.zeros((8, 4096), "f4")
    x[:, 5] = NAN
    ops = [
        ("scale", {"X": "x"}, {"Out": "a"}, {"scale": 2.0, "bias": 1.0}),
        ("relu6", {"X": "a"}, {"Out": "b"}, {}),
        ("hard_sigmoid", {"X": "b"}, {"Out": "c"}, {}),
    ]
    program, scope = PassCase({"x": x}, {}, ops).build()
    done = optimize(program.desc, scope, keep=["c"])
    assert op_types(done) == ["onednn_eltwise"]
    (got,) = oprack.Executor().run(done.program, {"x": x}, ["c"], scope)
    assert np.isnan(got[:, 5]).all() and np.isfinite(np.delete(got, 5, 1)).all()
