"""Kernels of special functions."""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._numeric import rounded_once
from oprack_math.kernels._sets import BOTH, REAL_FLOATS

# bessel ---------------------------------------------------------------------------------------------------------------
# Modified Bessel functions of the first kind, orders 0 and 1, made of array operations to double precision.
# Up to 30 the power series, all of whose terms are positive, so that nothing cancels; beyond it the asymptotic series
# (Abramowitz and Stegun, 9.7.1), whose least term is below e^-60 there.
_LIMIT = 30.0

_TERMS = 70

_ASYMPTOTIC_TERMS = 26


def _series(x: Array, order: int, xp: ArrayModule) -> Array:
    """I_order(x) for |x| up to _LIMIT, by Horner's rule."""
    quarter = x * x / 4
    total = xp.ones_like(x)
    for k in range(_TERMS, 0, -1):
        total = total * quarter / (k * (k + order)) + 1
    return total * x / 2 if order else total


def _scaled_asymptotic(x: Array, order: int, xp: ArrayModule) -> Array:
    """exp(-x) I_order(x) for x from _LIMIT on."""
    total, mu = xp.ones_like(x), 4 * order * order
    for k in range(_ASYMPTOTIC_TERMS, 0, -1):
        total = 1 - total * (mu - (2 * k - 1) ** 2) / (8 * k * x)
    return total / xp.sqrt(2 * xp.pi * x)


def bessel(x: Array, order: int, scaled: bool, xp: ArrayModule) -> Array:
    """I_order(x), or exp(-|x|) I_order(x), in the dtype of x; orders 0 and 1."""
    work = x.astype(xp.float32 if x.dtype.itemsize == 2 else xp.float64, copy=False)
    size = xp.abs(work)
    # the bounds keep each branch finite where the other one is taken; NaN passes through both
    small, large = xp.minimum(size, _LIMIT), xp.maximum(size, _LIMIT)
    near, far = _series(small, order, xp), _scaled_asymptotic(large, order, xp)
    if scaled:
        near = near * xp.exp(-small)
    else:
        # in two factors, since exp(x) overflows before the function does
        half = xp.exp(large / 2)
        far = half * far * half
    result = xp.where(size <= _LIMIT, near, far)
    return (xp.copysign(result, work) if order else result).astype(x.dtype, copy=False)


# gamma ----------------------------------------------------------------------------------------------------------------
# The logarithm of the gamma function and its derivatives, made of array operations to double precision.
# Stirling's series and its derivatives (Abramowitz and Stegun, 6.1.41, 6.3.18 and 6.4.11) beyond 10, the recurrence
# of the gamma function up to there, and its reflection below 0.
_SHIFT = 10
# B_2, B_4 ... B_20
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _in_double(x: Array, xp: ArrayModule) -> Array:
    return x.astype(xp.float64, copy=False)


def _gamma_series(x: Array, power: int, factors: list[float]) -> Array:
    """The sum of factors[k] x^-(power + 2k), by Horner's rule."""
    inverse = 1 / (x * x)
    total = inverse * 0
    for factor in reversed(factors):
        total = total * inverse + factor
    return total / x**power


def _sin_pi(x: Array, xp: ArrayModule) -> Array:
    """|sin(pi x)|, exact to rounding also far from 0."""
    return xp.sin(xp.pi * xp.abs(x - xp.rint(x)))


def lgamma_of(x: Array, xp: ArrayModule) -> Array:
    """ln |Gamma(x)| in the dtype of x."""
    given = _in_double(x, xp)
    mirrored = given < 0.5
    y = xp.where(mirrored, 1 - given, given)
    product, top = xp.ones_like(y), y
    for _ in range(_SHIFT):
        near = top < _SHIFT
        product = xp.where(near, product * top, product)
        top = xp.where(near, top + 1, top)
    correction = _gamma_series(top, 1, [b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(_BERNOULLI)])
    # (top - 1/2) ln(top) - top, written so that it does not overflow before the result does
    value = (top - 0.5) * (xp.log(top) - 1) - 0.5 + 0.5 * math.log(2 * math.pi) + correction - xp.log(product)
    value = xp.where(y == xp.inf, xp.inf, value)
    reflected = math.log(math.pi) - xp.log(_sin_pi(given, xp)) - value
    # infinity has no sine, and at the poles the logarithm is one
    reflected = xp.where((given == xp.rint(given)) | (given == -xp.inf), xp.inf, reflected)
    return xp.where(mirrored, reflected, value).astype(x.dtype, copy=False)


def digamma_of(x: Array, xp: ArrayModule) -> Array:
    """psi(x) in the dtype of x."""
    given = _in_double(x, xp)
    mirrored = given < 0
    y = xp.where(mirrored, 1 - given, given)
    below, top = xp.zeros_like(y), y
    for _ in range(_SHIFT):
        near = top < _SHIFT
        below = xp.where(near, below + 1 / top, below)
        top = xp.where(near, top + 1, top)
    value = xp.log(top) - 0.5 / top - _gamma_series(top, 2, [b / (2 * k + 2) for k, b in enumerate(_BERNOULLI)]) - below
    value = xp.where(y == xp.inf, xp.inf, value)
    reflected = value - xp.pi / xp.tan(xp.pi * (given - xp.rint(given)))
    pole = (given == xp.rint(given)) & (given <= 0)
    return xp.where(pole, xp.nan, xp.where(mirrored, reflected, value)).astype(x.dtype, copy=False)


def _cot_derivative(n: int) -> list[float]:
    """Coefficients of the polynomial P with (d/dt)^n cot t = P(cot t), since cot' = -(1 + cot^2)."""
    p = [0.0, 1.0]
    for _ in range(n):
        derivative = [i * c for i, c in enumerate(p)][1:]
        p = [-c for c in (*derivative, 0.0, 0.0)]
        for i, c in enumerate(derivative):
            p[i + 2] -= c
    return p


def polygamma_of(n: int, x: Array, xp: ArrayModule) -> Array:
    """The derivative of order n of psi at x, in the dtype of x."""
    if n == 0:
        return digamma_of(x, xp)
    given = _in_double(x, xp)
    mirrored = given < 0
    y = xp.where(mirrored, 1 - given, given)
    # n! times the zeta function of Hurwitz: a sum up to `top`, then Euler and Maclaurin's formula
    below, top = xp.zeros_like(y), y
    for _ in range(_SHIFT):
        near = top < _SHIFT
        below = xp.where(near, below + top ** -(n + 1.0), below)
        top = xp.where(near, top + 1, top)
    factors, factor = [], 1.0
    for k, b in enumerate(_BERNOULLI, 1):
        # (n+1)(n+2)...(n+2k-1) / (2k)!
        factor = factor * (n + 2 * k - 1) * (n + 2 * k - 2) / ((2 * k) * (2 * k - 1)) if k > 1 else (n + 1) / 2
        factors.append(b * factor)
    tail = top**-n / n + 0.5 * top ** -(n + 1.0) + _gamma_series(top, n + 2, factors)
    value = (-1.0) ** (n + 1) * math.gamma(n + 1) * (below + tail)
    cot = 1 / xp.tan(xp.pi * (given - xp.rint(given)))
    polynomial = xp.zeros_like(cot)
    for coefficient in reversed(_cot_derivative(n)):
        polynomial = polynomial * cot + coefficient
    reflected = (-1.0) ** n * value - math.pi ** (n + 1) * polynomial
    pole = (given == xp.rint(given)) & (given <= 0)
    return xp.where(pole, math.copysign(math.inf, n % 2 - 0.5), xp.where(mirrored, reflected, value)).astype(
        x.dtype, copy=False
    )


# digamma --------------------------------------------------------------------------------------------------------------
@kernel("digamma", place=BOTH, dtypes=REAL_FLOATS)
def digamma(X: Array, *, xp: ArrayModule) -> Array:
    """psi(X)."""
    return digamma_of(X, xp)


@kernel("digamma_grad", place=BOTH, dtypes=REAL_FLOATS)
def digamma_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD psi'(X)."""
    return Out_grad * polygamma_of(1, X, xp)


# erf ------------------------------------------------------------------------------------------------------------------
# W. J. Cody, "Rational Chebyshev approximation for the error function", Mathematics of Computation 23 (1969): a
# rational function of x^2 up to 0.46875, of x times exp(-x^2) up to 4, and of 1/x^2 beyond.
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


# i0 -------------------------------------------------------------------------------------------------------------------
@kernel("i0", place=BOTH, dtypes=REAL_FLOATS)
def i0(x: Array, *, xp: ArrayModule) -> Array:
    """I0(x)."""
    return bessel(x, 0, False, xp)


@kernel("i0_grad", place=BOTH, dtypes=REAL_FLOATS)
def i0_grad(x: Array, out_grad: Array, *, xp: ArrayModule) -> Array:
    """out@GRAD I1(x)."""
    return out_grad * bessel(x, 1, False, xp)


# i0e ------------------------------------------------------------------------------------------------------------------
@kernel("i0e", place=BOTH, dtypes=REAL_FLOATS)
def i0e(x: Array, *, xp: ArrayModule) -> Array:
    """exp(-|x|) I0(x)."""
    return bessel(x, 0, True, xp)


@kernel("i0e_grad", place=BOTH, dtypes=REAL_FLOATS)
def i0e_grad(x: Array, out: Array, out_grad: Array, *, xp: ArrayModule) -> Array:
    """out@GRAD (exp(-|x|) I1(x) - sign(x) out)."""
    return out_grad * (bessel(x, 1, True, xp) - xp.sign(x) * out)


# i1 -------------------------------------------------------------------------------------------------------------------
@kernel("i1", place=BOTH, dtypes=REAL_FLOATS)
def i1(x: Array, *, xp: ArrayModule) -> Array:
    """I1(x)."""
    return bessel(x, 1, False, xp)


@kernel("i1_grad", place=BOTH, dtypes=REAL_FLOATS)
def i1_grad(x: Array, out: Array, out_grad: Array, *, xp: ArrayModule) -> Array:
    """out@GRAD (I0(x) - out / x), half of it at 0."""
    one, half = x.dtype.type(1), x.dtype.type(0.5)
    ratio = xp.where(x == 0, half, out / xp.where(x == 0, one, x))
    return out_grad * (bessel(x, 0, False, xp) - ratio)


# i1e ------------------------------------------------------------------------------------------------------------------
@kernel("i1e", place=BOTH, dtypes=REAL_FLOATS)
def i1e(x: Array, *, xp: ArrayModule) -> Array:
    """exp(-|x|) I1(x)."""
    return bessel(x, 1, True, xp)


@kernel("i1e_grad", place=BOTH, dtypes=REAL_FLOATS)
def i1e_grad(x: Array, out: Array, out_grad: Array, *, xp: ArrayModule) -> Array:
    """out@GRAD (exp(-|x|) I0(x) - out (sign(x) + 1/x)), half of it at 0."""
    one, half = x.dtype.type(1), x.dtype.type(0.5)
    ratio = xp.where(x == 0, half, out / xp.where(x == 0, one, x))
    return out_grad * (bessel(x, 0, True, xp) - xp.sign(x) * out - ratio)


# lgamma ---------------------------------------------------------------------------------------------------------------
@kernel("lgamma", place=BOTH, dtypes=REAL_FLOATS)
def lgamma(X: Array, *, xp: ArrayModule) -> Array:
    """Logarithm of the size of the gamma function."""
    return lgamma_of(X, xp)


@kernel("lgamma_grad", place=BOTH, dtypes=REAL_FLOATS)
def lgamma_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD psi(X)."""
    return Out_grad * digamma_of(X, xp)


# logit ----------------------------------------------------------------------------------------------------------------
@kernel("logit", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def logit(X: Array, *, eps: float, xp: ArrayModule) -> Array:
    """ln(z / (1 - z)) of X cut to [eps, 1 - eps]."""
    low, high = X.dtype.type(eps), X.dtype.type(1 - eps)
    z = xp.clip(X, low, high) if eps else X
    return xp.log(z / (1 - z))


@kernel("logit_grad", place=BOTH, dtypes=REAL_FLOATS)
@rounded_once
def logit_grad(X: Array, Out_grad: Array, *, eps: float, xp: ArrayModule) -> Array:
    """Out@GRAD / (X (1 - X)), and 0 beyond eps and 1 - eps."""
    low, high = X.dtype.type(eps), X.dtype.type(1 - eps)
    return xp.where((X < low) | (X > high), X.dtype.type(0), Out_grad / (X * (1 - X)))


# polygamma ------------------------------------------------------------------------------------------------------------
@kernel("polygamma", place=BOTH, dtypes=REAL_FLOATS)
def polygamma(x: Array, *, n: int, xp: ArrayModule) -> Array:
    """The derivative of order n of psi."""
    return polygamma_of(n, x, xp)


@kernel("polygamma_grad", place=BOTH, dtypes=REAL_FLOATS)
def polygamma_grad(x: Array, out_grad: Array, *, n: int, xp: ArrayModule) -> Array:
    """out@GRAD times the derivative of the next order."""
    return out_grad * polygamma_of(n + 1, x, xp)
