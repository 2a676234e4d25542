"""Kernels of roll."""

from __future__ import annotations

from oprack.kernel import kernel

from oprack_tensor.dims import to_ints


def _rolled(array, shifts, axis, ctx, xp):
    axis = axis or ctx.attrs.get("dims", ())  # programs of 1.x
    return xp.roll(array, tuple(shifts), tuple(axis)) if axis else xp.roll(array, sum(shifts))


@kernel("roll", place=("cpu", "cuda"))
def roll(X, ShiftsTensor=None, *, shifts, axis, ctx, xp):
    return _rolled(X, to_ints(ShiftsTensor, None, shifts), axis, ctx, xp)


@kernel("roll_grad", place=("cpu", "cuda"))
def roll_grad(ShiftsTensor=None, Out_grad=None, *, shifts, axis, ctx, xp):
    return _rolled(Out_grad, [-s for s in to_ints(ShiftsTensor, None, shifts)], axis, ctx, xp)
