"""Kernels of roll."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.kernel import Array, ArrayModule, KernelContext, kernel

from oprack_tensor.dims import to_ints


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
    Out_grad: Array | None = None,
    *,
    shifts: list[int],
    axis: list[int],
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    return _rolled(Out_grad, [-s for s in to_ints(ShiftsTensor, None, shifts)], axis, ctx, xp)
