"""Kernel of fused_transpose."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES


@kernel("fused_transpose", place=BOTH, dtypes=DTYPES)
def fused_transpose(
    X: Array,
    *,
    axis: list[int],
    fused_squeeze2_axes: list[int],
    fused_unsqueeze2_axes: list[int],
    fused_reshape2_shape: list[int],
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """A transposed copy in its new shape."""
    out = xp.ascontiguousarray(X.transpose(axis))
    gone = {a % out.ndim for a in fused_squeeze2_axes}
    out = out.reshape([d for i, d in enumerate(out.shape) if i not in gone])
    for a in fused_unsqueeze2_axes:
        out = xp.expand_dims(out, a)
    if fused_reshape2_shape:
        out = out.reshape([out.shape[i] if s == 0 else s for i, s in enumerate(fused_reshape2_shape)])
    return (out.copy() if xp.shares_memory(out, X) else out), xp.empty((0, *X.shape), X.dtype)
