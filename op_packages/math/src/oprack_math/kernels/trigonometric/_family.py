"""What sin, cos and tanh share in their higher gradients."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule


def sin_cos(x: Array, xp: ArrayModule) -> tuple[Array, Array]:
    """Both at x, in the dtype of x."""
    return xp.sin(x).astype(x.dtype, copy=False), xp.cos(x).astype(x.dtype, copy=False)


def given(value: Array | None, like: Array) -> Array:
    """An absent gradient counts as zero."""
    return like.dtype.type(0) if value is None else value


def triple(slot: str, first: Array, by_grad_out: Array, by_grad_x_grad: Array) -> dict[str, Array]:
    """The outputs of a triple gradient by slot."""
    return {slot: first, "grad_out_forward@GRAD": by_grad_out, "grad_x_grad_forward@GRAD": by_grad_x_grad}
