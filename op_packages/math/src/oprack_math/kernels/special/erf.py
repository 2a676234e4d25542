"""Kernels of erf and of its gradient. The function is made of array operations, to double precision.

W. J. Cody, "Rational Chebyshev approximation for the error function", Mathematics of Computation 23 (1969): a rational
function of x^2 up to 0.46875, of x times exp(-x^2) up to 4, and of 1/x^2 beyond.
"""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL_FLOATS

_SMALL = (
    (3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3, 1.85777706184603153e-1),
    (2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3),
)
_MEDIUM = (
    (
        5.64188496988670089e-1,
        8.88314979438837594,
        6.61191906371416295e1,
        2.98635138197400131e2,
        8.81952221241769090e2,
        1.71204761263407058e3,
        2.05107837782607147e3,
        1.23033935479799725e3,
        2.15311535474403846e-8,
    ),
    (
        1.57449261107098347e1,
        1.17693950891312499e2,
        5.37181101862009858e2,
        1.62138957456669019e3,
        3.29079923573345963e3,
        4.36261909014324716e3,
        3.43936767414372164e3,
        1.23033935480374942e3,
    ),
)
_LARGE = (
    (
        3.05326634961232344e-1,
        3.60344899949804439e-1,
        1.25781726111229246e-1,
        1.60837851487422766e-2,
        6.58749161529837803e-4,
        1.63153871373020978e-2,
    ),
    (
        2.56852019228982242,
        1.87295284992346047,
        5.27905102951428412e-1,
        6.05183413124413191e-2,
        2.33520497626869185e-3,
    ),
)
_1_SQRT_PI = 5.6418958354775628695e-1


def _rational(coefficients: tuple[tuple[float, ...], tuple[float, ...]], x: Array) -> Array:
    """Cody's evaluation: the last numerator coefficient leads, then both polynomials go on in step."""
    p, q = coefficients
    top, bottom = p[-1] * x, x
    for a, b in zip(p[:-2], q[:-1], strict=True):
        top, bottom = (top + a) * x, (bottom + b) * x
    return (top + p[-2]) / (bottom + q[-1])


def erf_of(X: Array, xp: ArrayModule) -> Array:
    """erf of every element, in the dtype of X; NaN stays NaN."""
    dtype = X.dtype
    work = xp.float32 if dtype.itemsize <= 2 else xp.float64
    x = X.astype(work, copy=False)
    size = xp.abs(x)
    square = x * x
    small = x * _rational(_SMALL, xp.minimum(square, 0.25))
    # beyond 6 erf is 1 in double precision; the bounds keep each branch finite where another one is taken
    y = xp.clip(size, 0.46875, 4.0)
    medium = xp.exp(-y * y) * _rational(_MEDIUM, y)
    y = xp.clip(size, 4.0, 6.0)
    inverse = 1 / (y * y)
    large = xp.exp(-y * y) / y * (_1_SQRT_PI - inverse * _rational(_LARGE, inverse))
    tail = xp.where(size <= 4.0, medium, large)
    result = xp.where(size <= 0.46875, small, xp.copysign(1 - tail, x))
    return xp.where(xp.isnan(x), x, result).astype(dtype, copy=False)


@kernel("erf", place=BOTH, dtypes=REAL_FLOATS)
def erf(X: Array, *, xp: ArrayModule) -> Array:
    """The error function."""
    return erf_of(X, xp)


@kernel("erf_grad", place=BOTH, dtypes=REAL_FLOATS)
def erf_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD 2/sqrt(pi) exp(-X^2)."""
    return Out_grad * X.dtype.type(1.1283791670955126) * xp.exp(-X * X)
