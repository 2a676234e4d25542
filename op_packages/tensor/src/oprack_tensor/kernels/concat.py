"""Kernels of concat."""

from __future__ import annotations

from oprack.kernel import kernel


@kernel("concat", place=("cpu", "cuda"))
def concat(X, AxisTensor=None, *, axis, xp):
    return xp.concatenate(X, axis=axis if AxisTensor is None else int(AxisTensor.reshape(-1)[0]))


@kernel("concat_grad", place=("cpu", "cuda"), view=True)
def concat_grad(Out_grad, X, AxisTensor=None, *, axis, ctx):
    axis = axis if AxisTensor is None else int(AxisTensor.reshape(-1)[0])
    axis += Out_grad.ndim if axis < 0 else 0
    grads, start = [], 0
    for i, x in enumerate(X):
        stop = start + x.shape[axis]
        part = Out_grad[(slice(None),) * axis + (slice(start, stop),)]
        grads.append(part if ctx.wants("X@GRAD", i) else None)
        start = stop
    return grads
