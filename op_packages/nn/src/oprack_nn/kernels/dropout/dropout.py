"""Kernels of dropout and its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS, HALF_FLOATS

from oprack_nn.kernels.dropout._family import BOTH, drop, undrop


@kernel("dropout", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout(X, Seed=None, *, dropout_prob, is_test, dropout_implementation, fix_seed, seed, ctx, xp):
    return drop(X, X.shape, Seed, dropout_prob, is_test, dropout_implementation, fix_seed, seed, ctx, xp)


@kernel("dropout_grad", place=BOTH, dtypes=FLOATS | HALF_FLOATS)
def dropout_grad(Out_grad, Mask=None, *, dropout_prob, is_test, dropout_implementation):
    return undrop(Mask, Out_grad, dropout_prob, is_test, dropout_implementation)
