"""Kernels of dropout_nd and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS, HALF_FLOATS

from oprack_nn.kernels.dropout._family import BOTH, drop, undrop


@kernel("dropout_nd", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout_nd(
    X: Array,
    Seed: Array | None = None,
    *,
    dropout_prob: float,
    is_test: bool,
    dropout_implementation: str,
    axis: list[int],
    fix_seed: bool,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array | None]:
    shape = tuple(n if not axis or i in axis else 1 for i, n in enumerate(X.shape))
    return drop(X, shape, Seed, dropout_prob, is_test, dropout_implementation, fix_seed, seed, ctx, xp)


@kernel("dropout_nd_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout_nd_grad(
    Out_grad: Array, Mask: Array | None = None, *, dropout_prob: float, is_test: bool, dropout_implementation: str
) -> Array:
    return undrop(Mask, Out_grad, dropout_prob, is_test, dropout_implementation)
