"""Records of the edges of a domain: NaN, infinities, halves, zeros, integers, no elements."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

f32 = np.float32
nan, inf = np.nan, np.inf
x = np.arange(24, dtype=f32).reshape(2, 3, 4) / 8 + 0.25
y = np.array([1.5, -2.0, 0.5], f32)
empty = np.zeros((0, 3), f32)


def _floats(*values):
    return np.array(values, f32)


def _ints(*values):
    return np.array(values, np.int32)


CASES = [
    OpCase(
        "elementwise_max", {"X": _floats(nan, 1), "Y": _floats(1, nan)}, outputs={"Out": _floats(1, nan)}, name="nan"
    ),
    OpCase(
        "elementwise_div",
        {"X": _ints(7, -7, 7, -7), "Y": _ints(2, 2, -2, -2)},
        outputs={"Out": _ints(3, -3, -3, 3)},
        name="integers",
    ),
    OpCase(
        "elementwise_floordiv",
        {"X": _ints(7, -7, 7, -7), "Y": _ints(2, 2, -2, -2)},
        outputs={"Out": _ints(3, -4, -4, 3)},
        name="integers",
    ),
    OpCase(
        "elementwise_mod",
        {"X": _ints(7, -7, 7, -7), "Y": _ints(2, 2, -2, -2)},
        outputs={"Out": _ints(1, 1, -1, -1)},
        name="integers",
    ),
    OpCase(
        "elementwise_pow",
        {"X": _ints(2, 3, -2, 1), "Y": _ints(-1, 0, 3, -5)},
        outputs={"Out": _ints(0, 1, -8, 1)},
        name="integers",
    ),
    OpCase(
        "equal",
        {"X": _floats(1e-9, 1e-7, inf, nan), "Y": _floats(0, 0, inf, nan)},
        outputs={"Out": np.array([True, False, True, False])},
        name="tolerance",
    ),
    OpCase(
        "not_equal",
        {"X": np.array([1e-8, 0.9e-8]), "Y": np.zeros(2)},
        outputs={"Out": np.array([True, False])},
        name="tolerance",
    ),
    OpCase(
        "round",
        {"X": _floats(0.5, 2.5, -2.5, 0.49999997, -0.2)},
        outputs={"Out": _floats(1, 3, -3, 0, 0)},
        name="halves",
    ),
    OpCase("pow", {"X": _ints(7, -7, 0)}, {"factor": 2.5}, {"Out": _ints(49, 49, 0)}, name="integers"),
    OpCase(
        "pow",
        {"X": _floats(0, 2), "FactorTensor": np.array([3], f32)},
        outputs={"Out": _floats(0, 8)},
        grads=["X"],
        name="tensor",
    ),
    OpCase(
        "scale",
        {"X": _ints(7, -7)},
        {"scale": 2.5, "bias": -0.7, "bias_after_scale": False},
        {"Out": _ints(14, -14)},
        name="integers",
    ),
    OpCase(
        "scale",
        {"X": np.array([True, False])},
        {"scale": 2.0, "bias": 0.5},
        {"Out": np.array([True, True])},
        name="bool",
    ),
    OpCase(
        "scale",
        {"X": y, "ScaleTensor": np.array([3.0])},
        {"scale": 9.0, "bias": 1.0},
        {"Out": y * 3 + 1},
        ["X"],
        name="tensor",
    ),
    OpCase("clip", {"X": _ints(7, -7, 0)}, {"min": -1.7, "max": inf}, {"Out": _ints(7, -1, 0)}, name="integers"),
    OpCase("arg_max", {"X": _floats(nan, 1, 3, nan, 3)}, {"axis": 0}, {"Out": np.int64(2)}, name="nan"),
    OpCase("reduce_mean", {"X": _ints(-3, -2, -2)}, {"dim": [0]}, {"Out": np.int32(-2)}, name="integers"),
    OpCase("reduce_sum", {"X": empty}, {"dim": [0]}, {"Out": np.zeros(3, f32)}, name="empty"),
    OpCase("reduce_prod", {"X": empty}, {"dim": [0], "keep_dim": True}, {"Out": np.ones((1, 3), f32)}, name="empty"),
    OpCase("reduce_all", {"X": x > 1, "AxisTensor": _ints(2)}, {"dim": [0]}, {"Out": (x > 1).all(2)}, name="tensor"),
    OpCase(
        "reduce_any",
        {"X": x > 2, "AxisTensorList": [_ints(0), _ints(-1)]},
        outputs={"Out": (x > 2).any((0, 2))},
        name="tensors",
    ),
    OpCase(
        "logsumexp",
        {"X": np.array([[-inf, -inf], [1000, 1000]], f32)},
        {"axis": [1]},
        {"Out": _floats(-inf, 1000 + np.log(2))},
        name="extremes",
    ),
    OpCase(
        "cumsum",
        {"X": x},
        {"axis": 1, "exclusive": True, "reverse": True},
        {"Out": np.cumsum(x[:, ::-1], 1)[:, ::-1] - x},
        ["X"],
        name="from_the_end",
    ),
    OpCase(
        "frobenius_norm_grad",
        {"X": y * 0, "Out": f32(0), "Out@GRAD": f32(1)},
        {"reduce_all": True},
        {"X@GRAD": y * 0},
        name="of_zero",
    ),
    OpCase("log", {"X": _ints(1, 0, -1)}, outputs={"Out": _floats(0, -inf, nan)}, name="integers"),
    OpCase(
        "erf",
        {"X": _floats(0, 0.3, -1, 5, inf, nan)},
        outputs={"Out": _floats(0, 0.328626759, -0.842700793, 1, 1, nan)},
        name="edges",
    ),
    OpCase("increment", {"X": _ints(3)}, {"step": 2.7}, {"Out": _ints(5)}, name="integers"),
]
