"""Kernels of sequences against sequences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from oprack.errors import InvalidLoDError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import offsets_of, sequence_offsets, with_lod


def _pairs(ctx: KernelContext) -> Iterator[tuple[slice, slice]]:
    """The rows of X and of Y of each sequence."""
    x, y = sequence_offsets(ctx, "X"), sequence_offsets(ctx, "Y")
    if len(x) != len(y):
        raise InvalidLoDError(
            f"op {ctx.op_type}: X has {len(x) - 1} sequences and Y {len(y) - 1}; expected as many of each"
        )
    for a, b, c, d in zip(x, x[1:], y, y[1:], strict=False):
        yield slice(a, b), slice(c, d)


@kernel("match_matrix_tensor", dtypes=FLOATS)
def match_matrix_tensor(X: Array, Y: Array, W: Array, *, dim_t: int, ctx: KernelContext) -> tuple[LoDTensor, Array]:
    """One product for all rows of X, and one for each sequence."""
    turned = (X @ W.reshape(len(W), -1)).reshape(len(X), dim_t, W.shape[2])
    images = [np.matmul(turned[x].transpose(1, 0, 2), Y[y].T).reshape(-1) for x, y in _pairs(ctx)]
    flat = np.concatenate(images) if images else np.zeros(0, X.dtype)
    return with_lod(flat[:, None], [offsets_of(np.array([i.size for i in images], np.int64))]), turned.reshape(-1, 1)


@kernel("match_matrix_tensor_grad", dtypes=FLOATS)
def match_matrix_tensor_grad(
    X: Array, Y: Array, W: Array, Tmp: Array, Out_grad: Array, *, dim_t: int, ctx: KernelContext
) -> tuple[Array, Array, Array]:
    """The gradient of X W sequence by sequence, and one product for W and X."""
    turned = Tmp.reshape(len(X), dim_t, W.shape[2])
    of_turned, of_y, flat, at = np.zeros_like(turned), np.zeros_like(Y), Out_grad.reshape(-1), 0
    for x, y in _pairs(ctx):
        shape = (dim_t, x.stop - x.start, y.stop - y.start)
        g = flat[at : at + np.prod(shape)].reshape(shape)
        at += g.size
        of_turned[x] = np.matmul(g, Y[y]).transpose(1, 0, 2)
        of_y[y] = np.matmul(g.transpose(0, 2, 1), turned[x].transpose(1, 0, 2)).sum(axis=0)
    wide = of_turned.reshape(len(X), dim_t * W.shape[2])
    return wide @ W.reshape(len(W), -1).T, of_y, (X.T @ wide).reshape(W.shape)
