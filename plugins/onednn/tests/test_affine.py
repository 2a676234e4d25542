"""A batch_norm before its convolution becomes one itself, and what follows goes into it."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types

CLOSE = dict(rtol=1e-5, atol=1e-5)
STATE = ("Scale", "Bias", "Mean", "Variance")


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def case(*ops, shape=(2, 6, 9, 10), x=None, attrs=None, **params):
    rows = {name: normal(shape[1], seed=i) for i, name in enumerate(STATE)}
    rows["Variance"] = np.abs(rows["Variance"]) + 0.1
    outputs = {"Y": "y0", "MeanOut": "Mean", "VarianceOut": "Variance", "SavedMean": "sm", "SavedVariance": "sv"}
    norm = (
        "batch_norm",
        {"X": "x", **{n: n for n in STATE}},
        outputs,
        {"is_test": True, "epsilon": 1e-3} | (attrs or {}),
    )
    return PassCase({"x": normal(*shape) if x is None else x}, rows | params, [norm, *ops])


@pytest.mark.primitives("conv2d")
@pytest.mark.parametrize("shape", [(2, 6, 9, 10), (1, 16, 1, 1)], ids=str)
def test_activations_follow(shape):
    optimized = check_passes(
        case(("relu", {"X": "y0"}, {"Out": "y1"}, {}), shape=shape), "onednn_batch_norm", "onednn_fuse_conv2d", **CLOSE
    )
    assert op_types(optimized) == ["conv2d_post_ops"]


@pytest.mark.parametrize(
    ("attrs", "shape"),
    [({"is_test": False}, (2, 6, 9, 10)), ({"data_layout": "NHWC"}, (2, 6, 9, 6)), ({}, (4, 6)), ({}, (4, 6, 5))],
    ids=str,
)
def test_what_is_no_image_with_given_statistics_stays(attrs, shape):
    assert op_types(check_passes(case(shape=shape, attrs=attrs), "onednn_batch_norm", **CLOSE)) == ["batch_norm"]


def test_broken_statistics_stay():
    broken = case(Variance=np.full(6, -1, np.float32))
    assert op_types(check_passes(broken, "onednn_batch_norm", **CLOSE)) == ["batch_norm"]


def test_nan_and_infinities_stay_where_they_are():
    x = normal(2, 6, 9, 10)
    x[0, 1, 2, 3], x[1, 2, 0, 0] = np.nan, np.inf
    assert op_types(check_passes(case(x=x), "onednn_batch_norm", **CLOSE)) == ["conv2d_post_ops"]
