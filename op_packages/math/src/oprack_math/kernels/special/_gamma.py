"""The logarithm of the gamma function and its derivatives, made of array operations to double precision.

Stirling's series and its derivatives (Abramowitz and Stegun, 6.1.41, 6.3.18 and 6.4.11) beyond 10, the recurrence of
the gamma function up to there, and its reflection below 0.
"""

from __future__ import annotations

import math

from oprack.kernel import Array, ArrayModule

_SHIFT = 10
# B_2, B_4 ... B_20
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _in_double(x: Array, xp: ArrayModule) -> Array:
    return x.astype(xp.float64, copy=False)


def _series(x: Array, power: int, factors: list[float]) -> Array:
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
    correction = _series(top, 1, [b / ((2 * k + 2) * (2 * k + 1)) for k, b in enumerate(_BERNOULLI)])
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
    value = xp.log(top) - 0.5 / top - _series(top, 2, [b / (2 * k + 2) for k, b in enumerate(_BERNOULLI)]) - below
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
    tail = top**-n / n + 0.5 * top ** -(n + 1.0) + _series(top, n + 2, factors)
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
