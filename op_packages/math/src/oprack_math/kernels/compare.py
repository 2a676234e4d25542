"""Kernels of comparisons and of tests for infinities and NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows
from oprack.types import ALL_DTYPES, BOOL, COMPLEX

from oprack_math.kernels._broadcast import align
from oprack_math.kernels._rows import with_values
from oprack_math.kernels._sets import BOTH, FLOATING, REAL
from oprack_math.ops.compare import tolerance

if TYPE_CHECKING:
    import numpy as np


# close ----------------------------------------------------------------------------------------------------------------
# Comparison within tolerances.
def close(
    op_type: str,
    x: Array,
    y: Array,
    tensors: tuple[Array | None, Array | None],
    texts: tuple[str, str],
    equal_nan: bool,
    xp: ArrayModule,
) -> Array:
    """Whether x = y, or |x - y| <= atol + rtol |y| of a finite y; tensors, texts: (rtol, atol), and a tensor wins."""
    rtol, atol = (
        float(t.reshape(-1)[0]) if t is not None else tolerance(op_type, name, text)
        for name, t, text in zip(("rtol", "atol"), tensors, texts, strict=True)
    )
    near = (x == y) | ((xp.abs(x - y) <= atol + rtol * xp.abs(y)) & xp.isfinite(y))
    return near | ((x != x) & (y != y)) if equal_nan else near


# shared ---------------------------------------------------------------------------------------------------------------
# What comparisons share.
COMPARABLE = REAL | BOOL


def equal_within_tolerance(x: Array, y: Array, xp: ArrayModule) -> Array:
    """x == y, where float32 and float64 may differ by 1e-8."""
    if x.dtype.kind == "f" and x.dtype.itemsize > 2:
        # the largest value of the dtype that is below 1e-8: float32's 1e-8 itself is one, float64's is not
        limit = 1e-8 if x.dtype.itemsize == 4 else float.fromhex("0x1.5798ee2308c39p-27")
        return (xp.abs(x - y) <= limit) | (x == y)  # infinities differ by NaN
    return x == y


# allclose -------------------------------------------------------------------------------------------------------------
@kernel("allclose", place=BOTH, dtypes=FLOATING)
def allclose(
    Input: Array,
    Other: Array,
    Rtol: Array | None = None,
    Atol: Array | None = None,
    *,
    rtol: str,
    atol: str,
    equal_nan: bool,
    xp: ArrayModule,
) -> Array | np.bool_:
    """All elements within the tolerances."""
    return close("allclose", Input, Other, (Rtol, Atol), (rtol, atol), equal_nan, xp).all()


# equal ----------------------------------------------------------------------------------------------------------------
@kernel("equal", place=BOTH, dtypes=COMPARABLE | COMPLEX)
def equal(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X equals Y, within 1e-8 for float32 and float64."""
    return equal_within_tolerance(*align(X, Y, axis, "equal"), xp)


# equal_all ------------------------------------------------------------------------------------------------------------
@kernel("equal_all", place=BOTH, dtypes=COMPARABLE)
def equal_all(X: Array, Y: Array, *, xp: ArrayModule) -> Array:
    """One shape and equal elements; an array in both cases, since plans take the first result for what all are."""
    return xp.asarray(equal_within_tolerance(X, Y, xp).all() if X.shape == Y.shape else False)


# greater_equal --------------------------------------------------------------------------------------------------------
@kernel("greater_equal", place=BOTH, dtypes=COMPARABLE)
def greater_equal(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X >= Y."""
    return xp.greater_equal(*align(X, Y, axis, "greater_equal"))


# greater_than ---------------------------------------------------------------------------------------------------------
@kernel("greater_than", place=BOTH, dtypes=COMPARABLE)
def greater_than(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X > Y."""
    return xp.greater(*align(X, Y, axis, "greater_than"))


# isclose --------------------------------------------------------------------------------------------------------------
@kernel("isclose", place=BOTH, dtypes=FLOATING)
def isclose(
    Input: Array,
    Other: Array,
    Rtol: Array | None = None,
    Atol: Array | None = None,
    *,
    rtol: str,
    atol: str,
    equal_nan: bool,
    xp: ArrayModule,
) -> Array:
    """Each element within the tolerances."""
    return close("isclose", Input, Other, (Rtol, Atol), (rtol, atol), equal_nan, xp)


# isfinite -------------------------------------------------------------------------------------------------------------
@kernel("isfinite", place=BOTH, dtypes=REAL)
def isfinite(X: Array, *, xp: ArrayModule) -> Array:
    """Whether all elements are finite."""
    return xp.isfinite(X).all().reshape(1)


# isfinite_v2 ----------------------------------------------------------------------------------------------------------
@kernel("isfinite_v2", place=BOTH, dtypes=ALL_DTYPES)
def isfinite_v2(X: Array, *, xp: ArrayModule) -> Array:
    """Neither infinite nor NaN."""
    return xp.isfinite(X)


@kernel("isfinite_v2", place=BOTH, dtypes=ALL_DTYPES)
def isfinite_v2_rows(X: SelectedRows, *, xp: ArrayModule) -> SelectedRows:
    """The same for every value of the rows."""
    return with_values(X, xp.isfinite(X.value))


# isinf ----------------------------------------------------------------------------------------------------------------
@kernel("isinf", place=BOTH, dtypes=REAL)
def isinf(X: Array, *, xp: ArrayModule) -> Array:
    """Whether any element is infinite."""
    return xp.isinf(X).any().reshape(1)


# isinf_v2 -------------------------------------------------------------------------------------------------------------
@kernel("isinf_v2", place=BOTH, dtypes=ALL_DTYPES)
def isinf_v2(X: Array, *, xp: ArrayModule) -> Array:
    """Infinite."""
    return xp.isinf(X)


@kernel("isinf_v2", place=BOTH, dtypes=ALL_DTYPES)
def isinf_v2_rows(X: SelectedRows, *, xp: ArrayModule) -> SelectedRows:
    """The same for every value of the rows."""
    return with_values(X, xp.isinf(X.value))


# isnan ----------------------------------------------------------------------------------------------------------------
@kernel("isnan", place=BOTH, dtypes=REAL)
def isnan(X: Array, *, xp: ArrayModule) -> Array:
    """Whether any element is NaN."""
    return xp.isnan(X).any().reshape(1)


# isnan_v2 -------------------------------------------------------------------------------------------------------------
@kernel("isnan_v2", place=BOTH, dtypes=ALL_DTYPES)
def isnan_v2(X: Array, *, xp: ArrayModule) -> Array:
    """NaN."""
    return xp.isnan(X)


@kernel("isnan_v2", place=BOTH, dtypes=ALL_DTYPES)
def isnan_v2_rows(X: SelectedRows, *, xp: ArrayModule) -> SelectedRows:
    """The same for every value of the rows."""
    return with_values(X, xp.isnan(X.value))


# less_equal -----------------------------------------------------------------------------------------------------------
@kernel("less_equal", place=BOTH, dtypes=COMPARABLE)
def less_equal(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X <= Y."""
    return xp.less_equal(*align(X, Y, axis, "less_equal"))


# less_than ------------------------------------------------------------------------------------------------------------
@kernel("less_than", place=BOTH, dtypes=COMPARABLE)
def less_than(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """X < Y."""
    return xp.less(*align(X, Y, axis, "less_than"))


# not_equal ------------------------------------------------------------------------------------------------------------
@kernel("not_equal", place=BOTH, dtypes=COMPARABLE | COMPLEX)
def not_equal(X: Array, Y: Array, *, axis: int, xp: ArrayModule) -> Array:
    """The contrary of equal."""
    return ~equal_within_tolerance(*align(X, Y, axis, "not_equal"), xp)
