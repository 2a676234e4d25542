"""Large parameters are updated block by block, with the bits that the formula on whole arrays gives."""

from __future__ import annotations

import numpy as np
import pytest
from oprack_optimizer.kernels import _update, adam, momentum
from oprack_optimizer.ops._state import MomentumRule

ADAM = (0.9, 0.999, 1e-6, np)
LAYOUTS = pytest.mark.parametrize("layout", [lambda a: a, lambda a: a.T], ids=["row major", "turned"])
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
KEPT = pytest.mark.parametrize("kept", [False, True])


def same_bits(monkeypatch, step, arrays, *rest, kept):
    """The step on whole arrays and in blocks; kept: the result goes to the parameter's memory."""
    want = step(*arrays, *rest)
    monkeypatch.setattr(_update, "BLOCK", 64)
    out = arrays[0] if kept else None
    before = [a.copy() for a in arrays[1:]]
    got = step(*arrays, *rest, out=out)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)
    for a, b in zip(arrays[1:], before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (got[0] is arrays[0]) == (kept and arrays[0].flags.c_contiguous)


def values(count, dtype, layout):
    rng = np.random.default_rng(0)
    return [layout(rng.random((37, 50)).astype(dtype)) for _ in range(count)]


@DTYPES
@LAYOUTS
@KEPT
def test_adam(monkeypatch, dtype, layout, kept):
    numbers = [np.asarray(v, dtype) for v in (0.01, 0.9, 0.99)]
    same_bits(monkeypatch, adam.step, values(4, dtype, layout), *numbers, *ADAM, kept=kept)


@DTYPES
@LAYOUTS
@KEPT
@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum(monkeypatch, dtype, layout, kept, nesterov):
    rule = (np.asarray(0.01, dtype), MomentumRule(0.9, nesterov, "l2_decay", 0.1, False, 2.0))
    same_bits(monkeypatch, momentum.step, values(3, dtype, layout), *rule, kept=kept)
