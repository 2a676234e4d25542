"""Kernels of sparse_fused_attention and of its gradient."""

from __future__ import annotations

import math

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import SparseCsrTensor
from oprack.types import FLOATS

from oprack_sparse.kernels._patterns import coordinates
from oprack_sparse.kernels.product._matrices import inner_at, times_dense, transposed_times_dense
from oprack_sparse.kernels.reduce._rows import Rows, rows_of


def _rows(pattern: SparseCsrTensor) -> Rows:
    found = rows_of("sparse_fused_attention", pattern, -1)
    assert found is not None  # a CSR tensor has no dense dims
    return Rows(found)


def _matrices(x: Array) -> Array:
    return x.reshape(-1, *x.shape[2:])


@kernel("sparse_fused_attention", dtypes=FLOATS)
def sparse_fused_attention(
    query: Array,
    key: Array,
    value: Array,
    sparse_mask: SparseCsrTensor,
    key_padding_mask: Array | None = None,
    attn_mask: Array | None = None,
) -> tuple[Array, SparseCsrTensor]:
    """Products, weights and sums at the listed places alone."""
    matrix, row, column = coordinates(sparse_mask)
    scores = inner_at(sparse_mask, _matrices(query), _matrices(key)) / query.dtype.type(math.sqrt(query.shape[-1]))
    taken = np.ones(len(scores), bool)
    if key_padding_mask is not None:
        taken &= key_padding_mask[matrix // query.shape[1], column] != 0
    if attn_mask is not None:
        taken &= attn_mask[row, column] != 0
    rows = _rows(sparse_mask)
    largest = rows.reduced(np.maximum, np.where(taken, scores, -np.inf))
    power = np.where(taken, np.exp(scores - np.where(np.isfinite(largest), largest, 0)), 0).astype(query.dtype)
    total = rows.reduced(np.add, power)
    weights = sparse_mask.with_values(np.divide(power, total, out=np.zeros_like(power), where=total != 0))
    return times_dense(weights, _matrices(value)).reshape(query.shape), weights


@kernel("sparse_fused_attention_grad", dtypes=FLOATS)
def sparse_fused_attention_grad(
    query: Array, key: Array, value: Array, softmax: SparseCsrTensor, out_grad: Array
) -> tuple[Array, Array, Array]:
    """By query, key and value."""
    gradient, scale = _matrices(out_grad), query.dtype.type(1 / math.sqrt(query.shape[-1]))
    by_weights = inner_at(softmax, gradient, _matrices(value))
    product = softmax.values * by_weights
    by_scores = (product - softmax.values * _rows(softmax).reduced(np.add, product)) * scale
    scores = softmax.with_values(by_scores)
    by_query = times_dense(scores, _matrices(key)).reshape(query.shape)
    by_key = transposed_times_dense(scores, _matrices(query)).reshape(query.shape)
    return by_query, by_key, transposed_times_dense(softmax, gradient).reshape(query.shape)
