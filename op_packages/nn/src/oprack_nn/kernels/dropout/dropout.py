"""Kernels of dropout and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS, HALF_FLOATS

from oprack_nn.kernels.dropout._family import BOTH, drop, undrop


@kernel("dropout", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout(
    X: Array,
    Seed: Array | None = None,
    *,
    dropout_prob: float,
    is_test: bool,
    dropout_implementation: str,
    fix_seed: bool,
    seed: int,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array | None]:
    return drop(X, X.shape, Seed, dropout_prob, is_test, dropout_implementation, fix_seed, seed, ctx, xp)


@kernel("dropout_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout_grad(
    Out_grad: Array, Mask: Array | None = None, *, dropout_prob: float, is_test: bool, dropout_implementation: str
) -> Array:
    return undrop(Mask, Out_grad, dropout_prob, is_test, dropout_implementation)
