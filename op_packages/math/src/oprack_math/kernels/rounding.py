"""Kernels of ops that give whole numbers."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_math.kernels._sets import BOTH, REAL, REAL_FLOATS


# ceil -----------------------------------------------------------------------------------------------------------------
@kernel("ceil", place=BOTH, dtypes=REAL_FLOATS)
def ceil(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """The smallest integer that is not smaller."""
    return xp.ceil(X, out=out)


@kernel("ceil_grad", place=BOTH, dtypes=REAL_FLOATS)
def ceil_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(Out_grad)


# floor ----------------------------------------------------------------------------------------------------------------
@kernel("floor", place=BOTH, dtypes=REAL_FLOATS)
def floor(X: Array, *, out: Array | None = None, xp: ArrayModule) -> Array:
    """The greatest integer that is not greater."""
    return xp.floor(X, out=out)


@kernel("floor_grad", place=BOTH, dtypes=REAL_FLOATS)
def floor_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(Out_grad)


# nextafter ------------------------------------------------------------------------------------------------------------
@kernel("nextafter", place=BOTH, dtypes=REAL_FLOATS)
def nextafter(x: Array, y: Array, *, xp: ArrayModule) -> Array:
    """The next number towards y."""
    return xp.nextafter(x, y)


# round ----------------------------------------------------------------------------------------------------------------
@kernel("round", place=BOTH, dtypes=REAL_FLOATS)
def round_half_away(X: Array, *, xp: ArrayModule) -> Array:
    """The nearest integer; halves away from zero."""
    whole = xp.trunc(X)
    return whole + xp.copysign((xp.abs(X - whole) >= 0.5).astype(X.dtype), X)


@kernel("round_grad", place=BOTH, dtypes=REAL_FLOATS)
def round_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(Out_grad)


# trunc ----------------------------------------------------------------------------------------------------------------
@kernel("trunc", place=BOTH, dtypes=REAL)
def trunc(X: Array, *, xp: ArrayModule) -> Array:
    """The integer next to X towards 0; integers are copied."""
    return X.copy() if X.dtype.kind in "iu" else xp.trunc(X)


@kernel("trunc_grad", place=BOTH, dtypes=REAL)
def trunc_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Zeros."""
    return xp.zeros_like(Out_grad)
