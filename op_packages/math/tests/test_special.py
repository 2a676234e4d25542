"""Special functions over their whole range, against the standard library, integrals and functional equations."""

from __future__ import annotations

import math
import statistics

import numpy as np
import oprack
import pytest
from oprack import functional as F

RNG = np.random.default_rng(11)
WIDE = np.concatenate([RNG.uniform(-30, 30, 500), 10 ** RNG.uniform(-10, 10, 200)])
POSITIVE = np.concatenate([RNG.uniform(0.01, 40, 300), 10 ** RNG.uniform(-3, 8, 100)])


def of(function, x, **attrs):
    """The function at x, in the dtype of x."""
    return function(oprack.to_tensor(x), **attrs).numpy()


def test_lgamma_is_that_of_the_standard_library() -> None:
    want = np.array([math.lgamma(x) for x in WIDE])
    np.testing.assert_allclose(of(F.lgamma, WIDE), want, rtol=1e-13, atol=1e-13)
    edges = np.array([0.0, -1, -7, np.inf, -np.inf, 1e305, np.nan, 1, 2])
    np.testing.assert_allclose(of(F.lgamma, edges), [*[np.inf] * 5, math.lgamma(1e305), np.nan, 0, 0], atol=1e-14)


def test_digamma_obeys_recurrence_and_reflection() -> None:
    euler = 0.5772156649015329
    np.testing.assert_allclose(of(F.digamma, np.array([1.0, 0.5])), [-euler, -euler - 2 * math.log(2)], rtol=1e-15)
    step = of(F.digamma, POSITIVE + 1) - of(F.digamma, POSITIVE)
    np.testing.assert_allclose(step, 1 / POSITIVE, rtol=1e-10, atol=1e-14)
    mirrored = RNG.uniform(0.05, 0.95, 50) + 3
    gap = of(F.digamma, 1 - mirrored) - of(F.digamma, mirrored)
    np.testing.assert_allclose(gap, np.pi / np.tan(np.pi * mirrored), rtol=1e-10)
    assert np.isnan(of(F.digamma, np.array([0.0, -1, -2, np.nan]))).all()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_polygamma_is_the_sum_that_defines_it(n: int) -> None:
    x = np.array([0.3, 2.5, 11.0, -0.4, -3.7])
    # the terms up to 20,000, and the integral of those beyond
    k = x[:, None] + np.arange(20000)
    want = (-1) ** (n + 1) * math.factorial(n) * ((k ** -(n + 1.0)).sum(axis=1) + (x + 19999.5) ** -n / n)
    np.testing.assert_allclose(of(F.polygamma, x, n=n), want, rtol=1e-11)
    assert of(F.polygamma, np.array([np.inf]), n=n) == 0


def test_erfinv_is_the_quantile_of_the_normal_distribution() -> None:
    p = np.concatenate([RNG.uniform(-1, 1, 500), np.array([1 - 1e-14, -1 + 1e-12, 1e-9, 0])])
    normal = statistics.NormalDist()
    np.testing.assert_allclose(
        of(F.erfinv, p), [normal.inv_cdf((1 + x) / 2) / math.sqrt(2) for x in p], rtol=1e-12, atol=1e-16
    )
    edges = of(F.erfinv, np.array([1.0, -1, 1.5, np.nan]))
    np.testing.assert_array_equal(edges, [np.inf, -np.inf, np.nan, np.nan])


@pytest.mark.parametrize("order", [0, 1])
def test_bessel_functions_are_their_integrals(order: int) -> None:
    """1/pi times the integral of exp(x cos t) cos(order t), which the trapezoidal rule gives to all digits."""
    x = np.concatenate([RNG.uniform(-40, 40, 200), np.array([0, 1e-9, 29.99, 30.01, 500, -650])])
    t = np.linspace(0, np.pi, 2001)
    weights = np.cos(order * t) / 2000
    weights[[0, -1]] /= 2
    scaled = (np.exp(x[:, None] * np.cos(t) - np.abs(x)[:, None]) * weights).sum(axis=1)
    plain, small = (F.i0, F.i0e) if order == 0 else (F.i1, F.i1e)
    np.testing.assert_allclose(of(small, x), scaled, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(of(plain, x), scaled * np.exp(np.abs(x)), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(of(small, np.array([np.inf, np.nan])), [0, np.nan])
    assert of(plain, np.array([800.0])) == np.inf


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", ["lgamma", "digamma", "erfinv", "i0e", "i1e", "logit", "atanh", "expm1", "log1p"])
def test_narrow_dtypes_are_rounded_once(name: str, dtype: str) -> None:
    x = oprack.to_tensor(np.array([0.11, 0.52, 0.93]), dtype=dtype)
    wide = getattr(F, name)(oprack.to_tensor(x.numpy().astype(np.float64))).numpy()
    got = getattr(F, name)(x)
    assert got.dtype == dtype
    eps = {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-21}[dtype]
    np.testing.assert_allclose(got.numpy().astype(np.float64), wide, rtol=eps)
