"""Records of ops that move elements, and of their gradients, by what NumPy does with the dense array."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from oprack.tensor import SparseCsrTensor, SparseTensor
from oprack.testing import OpCase

from .._data import at, coo, csr, drawn, picked


def records(
    op: str,
    name: str,
    x: SparseTensor,
    attrs: Mapping[str, Any],
    moved: Callable[[np.ndarray], np.ndarray],
    tensors: Mapping[str, Any] | None = None,
) -> list[OpCase]:
    """Of an op that does to a dense array what `moved` does."""
    count, size = len(at(x)), int(np.prod(x.shape))
    places = np.zeros(x.shape, np.int64)
    places[at(x)] = (np.arange(size).reshape(x.shape) + 1)[at(x)]
    after = moved(places)
    listed = (after != 0).astype(np.float32)
    dense = len(x.shape) - count
    out = csr(listed) if isinstance(x, SparseCsrTensor) else coo(listed, listed.ndim - dense)
    if not isinstance(x, SparseCsrTensor):  # elements keep the order of x
        first = after[at(out)].reshape(out.nnz, -1)[:, 0]
        out = out.rebuilt([out.indices[:, np.argsort(first)]], out.values[np.argsort(first)])
    weights = drawn(*after.shape, seed=70)
    back = np.zeros(size + 1, np.float32)
    back[after.reshape(-1)] = weights.reshape(-1)
    back[0] = 0
    arrived = picked(out, weights)
    read = {"x": x} | dict(tensors or {})
    grad_read = {"x": x} | (dict(tensors or {}) if op == "sparse_slice" else {})
    grad_attrs = {} if op == "sparse_reshape" else attrs
    return [
        OpCase(op, read, attrs, {"out": picked(out, moved(x.to_dense()))}, ["x"], name=name),
        OpCase(
            f"{op}_grad",
            grad_read | {"out@GRAD": arrived},
            grad_attrs,
            {"x@GRAD": picked(x, back[places])},
            name=name,
        ),
    ]
