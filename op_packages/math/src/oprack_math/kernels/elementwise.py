"""Kernels of element-wise arithmetic."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import kernel
from oprack.tensor import SelectedRows
from oprack.types import BOOL, COMPLEX, FLOATS, HALF_FLOATS, INTEGERS

from oprack_math.kernels._broadcast import BOTH, align, broadcasting, usable

REAL = FLOATS | HALF_FLOATS | INTEGERS


def require_divisor(y, op_type, xp):
    """Raise InvalidArgumentError for an integer divisor of 0; on a GPU the check would wait for the device."""
    if y.dtype.kind in "iub" and xp.__name__ == "numpy" and not y.all():
        raise InvalidArgumentError(
            f"op {op_type}: Y (shape {list(y.shape)}, {y.dtype}) holds a 0; expected divisors other than 0, since "
            "integers have no infinity. Cast both inputs to a float dtype to divide by 0"
        )


def divide(x, y, xp, out=None):
    """x / y; integers towards zero, booleans as x and y."""
    kind = x.dtype.kind
    if kind == "b":
        return xp.logical_and(x, y, out=out)
    if kind in "iu":
        return xp.floor_divide(x - xp.fmod(x, y), y, out=out)
    return xp.divide(x, y, out=out)


def _divide_floats(call):
    """Floats and complex numbers need none of the rules for integers."""
    return broadcasting("divide")(call) if call.dtypes["X"][0].kind in "fc" else None


@kernel("elementwise_add", place=BOTH, dtypes=REAL | COMPLEX, specialize=broadcasting("add"))
def elementwise_add(X, Y, *, axis, out=None, xp):
    """X + Y."""
    x, y = align(X, Y, axis, "elementwise_add")
    return xp.add(x, y, out=usable(out, x, y))


@kernel("elementwise_sub", place=BOTH, dtypes=REAL | COMPLEX, specialize=broadcasting("subtract"))
def elementwise_sub(X, Y, *, axis, out=None, xp):
    """X - Y."""
    x, y = align(X, Y, axis, "elementwise_sub")
    return xp.subtract(x, y, out=usable(out, x, y))


@kernel("elementwise_mul", place=BOTH, dtypes=REAL | COMPLEX | BOOL, specialize=broadcasting("multiply"))
def elementwise_mul(X, Y, *, axis, xp):
    """X * Y."""
    return xp.multiply(*align(X, Y, axis, "elementwise_mul"))


@kernel("elementwise_mul", place=BOTH, dtypes=REAL | COMPLEX | BOOL)
def elementwise_mul_rows(X: SelectedRows, Y, *, xp):
    """Every value of X times the one element of Y."""
    if Y.size != 1:
        raise InvalidArgumentError(
            f"op elementwise_mul: X is SelectedRows and Y has shape {list(Y.shape)}; expected one element in Y"
        )
    return SelectedRows(X.rows.copy(), xp.multiply(X.value, Y.reshape(())), X.height, place=X.place, check=False)


@kernel("elementwise_div", place=BOTH, dtypes=REAL | COMPLEX | BOOL, specialize=_divide_floats)
def elementwise_div(X, Y, *, axis, xp):
    """X / Y."""
    require_divisor(Y, "elementwise_div", xp)
    x, y = align(X, Y, axis, "elementwise_div")
    return divide(x, y, xp)


@kernel("elementwise_max", place=BOTH, dtypes=REAL)
def elementwise_max(X, Y, *, axis, xp):
    """X where it is greater, else Y."""
    x, y = align(X, Y, axis, "elementwise_max")
    return xp.where(x > y, x, y)


@kernel("elementwise_min", place=BOTH, dtypes=REAL)
def elementwise_min(X, Y, *, axis, xp):
    """X where it is smaller, else Y."""
    x, y = align(X, Y, axis, "elementwise_min")
    return xp.where(x < y, x, y)


@kernel("elementwise_pow", place=BOTH, dtypes=REAL)
def elementwise_pow(X, Y, *, axis, xp):
    """X to the power of Y."""
    x, y = align(X, Y, axis, "elementwise_pow")
    if X.dtype.kind in "iu":
        if xp.__name__ == "numpy" and not (y < 0).any():
            return xp.power(x, y)  # float64 does not hold large ones
        return xp.power(x.astype(xp.float64), y.astype(xp.float64)).astype(X.dtype)
    return xp.power(x, y)


@kernel("elementwise_floordiv", place=BOTH, dtypes=REAL)
def elementwise_floordiv(X, Y, *, axis, xp):
    """Floor of X / Y."""
    require_divisor(Y, "elementwise_floordiv", xp)
    return xp.floor_divide(*align(X, Y, axis, "elementwise_floordiv"))


@kernel("elementwise_mod", place=BOTH, dtypes=REAL)
def elementwise_mod(X, Y, *, axis, out=None, xp):
    """Remainder with the sign of Y."""
    require_divisor(Y, "elementwise_mod", xp)
    x, y = align(X, Y, axis, "elementwise_mod")
    return xp.remainder(x, y, out=usable(out, x, y))
