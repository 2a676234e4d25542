"""Kernel of fusion_squared_mat_sub."""

from __future__ import annotations

from oprack.kernel import Array, KernelContext, kernel

from oprack_fused.kernels._steps import BOTH, DTYPES, Steps


@kernel("fusion_squared_mat_sub", place=BOTH, dtypes=DTYPES)
def fusion_squared_mat_sub(X: Array, Y: Array, *, scalar: float, ctx: KernelContext) -> tuple[Array, ...]:
    """square, matmul_v2, elementwise_sub, scale."""
    step = Steps(ctx)
    x, y, xy = step("square", X=X), step("square", X=Y), step("square", X=step("matmul_v2", X=X, Y=Y))
    difference = step("elementwise_sub", X=xy, Y=step("matmul_v2", X=x, Y=y))
    return x, y, xy, step("scale", X=difference, scale=scalar)
