"""Kernels of bilinear_tensor_product and of its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_linalg.kernels._matrices import BOTH


@kernel("bilinear_tensor_product", place=BOTH, dtypes=FLOATS)
def bilinear_tensor_product(X: Array, Y: Array, Weight: Array, Bias: Array | None = None, *, xp: ArrayModule) -> Array:
    """The products of X with all matrices of Weight, then their products with Y."""
    out = ((X @ Weight) * Y).sum(axis=-1).swapaxes(0, 1)
    return xp.ascontiguousarray(out) if Bias is None else out + Bias


@kernel("bilinear_tensor_product_grad", place=BOTH, dtypes=FLOATS)
def bilinear_tensor_product_grad(
    X: Array, Y: Array, Weight: Array, Out_grad: Array, *, ctx: KernelContext
) -> dict[str, Array | None]:
    """One product for each input."""
    found: dict[str, Array | None] = {}
    gradient = Out_grad.swapaxes(0, 1)[..., None]
    if ctx.wants("X@GRAD"):
        found["X@GRAD"] = (gradient * (Y @ Weight.swapaxes(-1, -2))).sum(axis=0)
    if ctx.wants("Y@GRAD"):
        found["Y@GRAD"] = (gradient * (X @ Weight)).sum(axis=0)
    if ctx.wants("Weight@GRAD"):
        found["Weight@GRAD"] = (gradient * X).swapaxes(-1, -2) @ Y
    if ctx.wants("Bias@GRAD"):
        found["Bias@GRAD"] = Out_grad.sum(axis=0, keepdims=True)
    return found
