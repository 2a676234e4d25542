"""Kernels of lod_reset."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor, check_lod
from oprack.types import BOOL, FLOATS, HALF_FLOATS, INTEGERS

from oprack_sequence.kernels._lod import host

_ANY = FLOATS | HALF_FLOATS | INTEGERS | BOOL


@kernel("lod_reset", place=("cpu", "cuda"), dtypes=_ANY, view=True)
def lod_reset(
    X: Array, Y: Array | None = None, *, target_lod: list[int], append: bool, ctx: KernelContext
) -> LoDTensor:
    """X itself under another LoD."""
    if Y is not None and ctx.lod("Y"):
        new = [list(level) for level in ctx.lod("Y")]
    elif Y is not None:
        new = [host(Y).reshape(-1).astype("int64").tolist()]
    elif target_lod:
        new = [list(target_lod)]
    else:
        raise InvalidArgumentError(f"op {ctx.op_type}: neither Y nor target_lod is given; expected one of them")
    lod = [*ctx.lod("X"), *new] if append else new
    return LoDTensor(X, check_lod(lod, X.shape[0], f"op {ctx.op_type}: the new LoD of X"), check=False)


@kernel("lod_reset_grad", place=("cpu", "cuda"), dtypes=_ANY, view=True)
def lod_reset_grad(Out_grad: Array) -> Array:
    """The gradient itself; X's LoD is shared by the shape rule."""
    return Out_grad
