"""Kernels of what makes complex numbers of real ones, and takes them apart."""

from __future__ import annotations

from typing import Any

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.tensor import ShapeOnly
from oprack.types import COMPLEX, FLOATS

from oprack_math.kernels._broadcast import align, sum_to
from oprack_math.kernels._sets import BOTH, NUMBERS


# shared ---------------------------------------------------------------------------------------------------------------
# Complex numbers made of their parts.
def of_parts(real: Array | int, imag: Array | int, xp: ArrayModule) -> Array:
    """real + i imag, of one float dtype each; a part that is a number stands for every element."""
    part: Any = real if hasattr(real, "dtype") else imag
    shape = (xp.broadcast_arrays(real, imag)[0] if hasattr(real, "dtype") and hasattr(imag, "dtype") else part).shape
    out = xp.empty(shape, xp.result_type(part.dtype, xp.complex64))
    out.real, out.imag = real, imag
    return out


# angle ----------------------------------------------------------------------------------------------------------------
@kernel("angle", place=BOTH, dtypes=FLOATS | COMPLEX)
def angle(X: Array, *, xp: ArrayModule) -> Array:
    """The argument of a complex number; pi below 0 and 0 elsewhere of a real one."""
    if X.dtype.kind == "c":
        return xp.arctan2(X.imag, X.real)
    return xp.where(X < 0, X.dtype.type(xp.pi), X.dtype.type(0))


@kernel("angle_grad", place=BOTH, dtypes=FLOATS | COMPLEX)
def angle_grad(X: Array, Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD i X / |X|^2, 0 at 0 and for real numbers."""
    if X.dtype.kind != "c":
        return xp.zeros_like(X)
    square = X.real * X.real + X.imag * X.imag
    g = xp.where(square == 0, square.dtype.type(0), Out_grad / xp.where(square == 0, square.dtype.type(1), square))
    return of_parts(-X.imag * g, X.real * g, xp)


# as_complex -----------------------------------------------------------------------------------------------------------
@kernel("as_complex", place=BOTH, dtypes=FLOATS)
def as_complex(X: Array, *, xp: ArrayModule) -> Array:
    """Pairs along the last dim as complex numbers."""
    return of_parts(X[..., 0], X[..., 1], xp)


# as_real --------------------------------------------------------------------------------------------------------------
@kernel("as_real", place=BOTH, dtypes=COMPLEX)
def as_real(X: Array, *, xp: ArrayModule) -> Array:
    """Both parts along a new last dim."""
    return xp.stack([X.real, X.imag], axis=-1)


# complex --------------------------------------------------------------------------------------------------------------
@kernel("complex", place=BOTH, dtypes=FLOATS)
def complex_of_parts(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """X + iY."""
    return of_parts(X, Y, xp)


@kernel("complex_grad", place=BOTH, dtypes=FLOATS)
def complex_grad(
    X: ShapeOnly, Y: ShapeOnly, Out_grad: Array, *, ctx: KernelContext
) -> tuple[Array | None, Array | None]:
    """Both parts of Out@GRAD, summed where X or Y was broadcast."""
    x, y = align(X, Y, -1)
    dx = sum_to(Out_grad.real, x, X).copy() if ctx.wants("X@GRAD") else None
    return dx, sum_to(Out_grad.imag, y, Y).copy() if ctx.wants("Y@GRAD") else None


# conj -----------------------------------------------------------------------------------------------------------------
@kernel("conj", place=BOTH, dtypes=NUMBERS)
def conj(X: Array, *, xp: ArrayModule) -> Array:
    """The complex conjugate; a copy of real numbers."""
    return xp.conjugate(X) if X.dtype.kind == "c" else X.copy()


# imag -----------------------------------------------------------------------------------------------------------------
@kernel("imag", place=BOTH, dtypes=COMPLEX)
def imag(X: Array) -> Array:
    """The imaginary part, in memory of its own."""
    return X.imag.copy()


@kernel("imag_grad", place=BOTH, dtypes=FLOATS | COMPLEX)
def imag_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """0 + i Out@GRAD."""
    return of_parts(0, Out_grad.real, xp)


# real -----------------------------------------------------------------------------------------------------------------
@kernel("real", place=BOTH, dtypes=COMPLEX)
def real(X: Array) -> Array:
    """The real part, in memory of its own."""
    return X.real.copy()


@kernel("real_grad", place=BOTH, dtypes=FLOATS | COMPLEX)
def real_grad(Out_grad: Array, *, xp: ArrayModule) -> Array:
    """Out@GRAD + 0i."""
    return of_parts(Out_grad.real, 0, xp)
