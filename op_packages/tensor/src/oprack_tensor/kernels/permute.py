"""The same elements in another order."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel

from oprack_tensor.dims import to_ints


# inverse --------------------------------------------------------------------------------------------------------------
# The permutation that undoes another one.
def inverse(axis: Sequence[int], rank: int) -> list[int]:
    axes = [a % rank for a in axis]
    return sorted(range(rank), key=axes.__getitem__)


# flip -----------------------------------------------------------------------------------------------------------------
# Kernel of flip: a view.
@kernel("flip", place=("cpu", "cuda"), view=True)
def flip(X: Array, *, axis: list[int], xp: ArrayModule) -> Array:
    return xp.flip(X, tuple(axis)) if X.ndim else X  # a dim 0 of a tensor without dims is allowed


# reverse --------------------------------------------------------------------------------------------------------------
# Kernel of reverse: a view.
@kernel("reverse", place=("cpu", "cuda"), view=True)
def reverse(X: Array, *, axis: list[int], xp: ArrayModule) -> Array:
    """X from the other end."""
    return xp.flip(X, tuple(axis))


# roll -----------------------------------------------------------------------------------------------------------------
def _rolled(array: Array, shifts: Sequence[int], axis: Sequence[int], ctx: KernelContext, xp: ArrayModule) -> Array:
    axis = axis or ctx.attrs.get("dims", ())  # programs of 1.x
    return xp.roll(array, tuple(shifts), tuple(axis)) if axis else xp.roll(array, sum(shifts))


@kernel("roll", place=("cpu", "cuda"))
def roll(
    X: Array,
    ShiftsTensor: Array | None = None,
    *,
    shifts: list[int],
    axis: list[int],
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    return _rolled(X, to_ints(ShiftsTensor, None, shifts), axis, ctx, xp)


@kernel("roll_grad", place=("cpu", "cuda"))
def roll_grad(
    ShiftsTensor: Array | None = None,
    Out_grad: RequiredArray = None,
    *,
    shifts: list[int],
    axis: list[int],
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    return _rolled(Out_grad, [-s for s in to_ints(ShiftsTensor, None, shifts)], axis, ctx, xp)


# transpose ------------------------------------------------------------------------------------------------------------
# Kernels of transpose: views.
@kernel("transpose", place=("cpu", "cuda"), view=True)
def transpose(X: Array, *, axis: list[int]) -> Array:
    return X.transpose(axis)


@kernel("transpose_grad", place=("cpu", "cuda"), view=True)
def transpose_grad(Out_grad: Array, *, axis: list[int]) -> Array:
    return Out_grad.transpose(inverse(axis, Out_grad.ndim))


# transpose2 -----------------------------------------------------------------------------------------------------------
# Kernels of transpose2: views.
@kernel("transpose2", place=("cpu", "cuda"), view=True)
def transpose2(X: Array, *, axis: list[int], xp: ArrayModule) -> tuple[Array, Array]:
    return X.transpose(axis), xp.empty((0, *X.shape), X.dtype)


@kernel("transpose2_grad", place=("cpu", "cuda"), view=True)
def transpose2_grad(Out_grad: Array, *, axis: list[int]) -> Array:
    return Out_grad.transpose(inverse(axis, Out_grad.ndim))
