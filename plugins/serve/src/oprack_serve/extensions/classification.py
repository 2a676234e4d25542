"""The classification extension: the largest values of an output in the place of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oprack_serve.errors import RequestError
from oprack_serve.extensions.bytes_tensors import of_strings
from oprack_serve.signature import Tensor


def classified(name: str, tensor: Tensor, count: int, labels: Sequence[str]) -> Tensor:
    """For each row the `count` largest values, the largest first, as BYTES `value:index`, or `value:index:label`.

    Raises RequestError for an output that is no tensor of numbers with rows.
    """
    array = np.asarray(tensor.array)
    if array.dtype.kind not in "iuf" or not array.size:
        raise RequestError(400, f"output {name!r}, {array.dtype.name} {list(array.shape)}, can't be classified")
    rows = array.reshape(len(array), -1) if array.ndim > 1 else array.reshape(1, -1)
    count = min(count, rows.shape[1])
    # the first of equal values comes first
    order = np.argsort(-rows.astype(np.float64), axis=1, kind="stable")[:, :count]
    pairs = [(row[i], int(i)) for row, indices in zip(rows, order, strict=True) for i in indices]
    texts = [f"{float(value):f}:{i}" + (f":{labels[i]}" if i < len(labels) else "") for value, i in pairs]
    shape = (len(rows), count) if array.ndim > 1 else (count,)
    return Tensor(of_strings(texts, shape), tensor.lod if array.ndim > 1 else [])
