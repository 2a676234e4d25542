"""Kernels of unstack: views."""

from __future__ import annotations

from oprack.kernel import kernel


def places(array, axis):
    """Views of the places along an axis, without that dim."""
    axis += array.ndim if axis < 0 else 0
    lead = (slice(None),) * axis
    return [array[(*lead, i, ...)] for i in range(array.shape[axis])]


@kernel("unstack", place=("cpu", "cuda"), view=True)
def unstack(X, *, axis):
    return places(X, axis)


@kernel("unstack_grad", place=("cpu", "cuda"))
def unstack_grad(Y_grad, *, axis, xp):
    return xp.stack(Y_grad, axis=axis)
