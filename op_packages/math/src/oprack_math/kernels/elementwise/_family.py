"""What kernels of element-wise arithmetic share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext
from oprack.tensor import ShapeOnly

from oprack_math.kernels._broadcast import align, sum_to


def require_divisor(y: Array, op_type: str, xp: ArrayModule) -> None:
    """Raise InvalidArgumentError for an integer divisor of 0; on a GPU the check would wait for the device."""
    if y.dtype.kind in "iub" and xp.__name__ == "numpy" and not y.all():
        raise InvalidArgumentError(
            f"op {op_type}: Y (shape {list(y.shape)}, {y.dtype}) holds a 0; expected divisors other than 0, since "
            "integers have no infinity. Cast both inputs to a float dtype to divide by 0"
        )


def route_gradient(
    gradient: Array,
    to_x: Callable[..., Any],
    to_y: Callable[..., Any],
    X: Array,
    Y: Array,
    x: Array,
    y: Array,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array | None, Array | None]:
    """The gradient to X where to_x(x, y) holds and to Y where to_y does, summed where they were broadcast."""
    # NaN satisfies neither test, so its gradient goes nowhere
    zero = xp.zeros((), gradient.dtype)
    dx = sum_to(xp.where(to_x(x, y), gradient, zero), x, X) if ctx.wants("X@GRAD") else None
    return dx, sum_to(xp.where(to_y(x, y), gradient, zero), y, Y) if ctx.wants("Y@GRAD") else None


def route_to_numbers(
    gradient: Array, to_x: Callable[..., Any], X: Array, Y: Array, ctx: KernelContext, xp: ArrayModule
) -> tuple[Array | None, Array | None]:
    """The gradient to X where to_x(X, Y) holds or Y is NaN, else to Y, summed where they were broadcast."""
    x, y = align(X, Y, -1)
    chosen = to_x(x, y) | (y != y)
    return route_gradient(gradient, lambda *_: chosen, lambda *_: ~chosen, X, Y, x, y, ctx, xp)


def combine_second(
    ddx: Array | None,
    ddy: Array | None,
    dout: ShapeOnly,
    Y: ShapeOnly,
    axis: int,
    xp: ArrayModule,
    function: Callable[..., Any],
) -> Array:
    """function of ddx and ddy, an absent one of which is zero, in the shape of dout."""
    zero = xp.zeros((), dout.dtype)
    # an absent operand is a zero of the output's rank, so that `axis` still says where the other one lies
    x = zero if ddx is None else align(ddx, dout, axis)[0]
    y = zero if ddy is None else align(ddy, dout, axis)[0]
    result = function(x, y)
    return result if result.shape == dout.shape else xp.broadcast_to(result, dout.shape).copy()


def or_zeros(given: Array | None, aligned_like: Array, xp: ArrayModule) -> Array:
    """`given` at the rank of aligned_like; zeros where it is absent."""
    return xp.zeros_like(aligned_like) if given is None else given.reshape(aligned_like.shape)
