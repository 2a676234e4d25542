"""Kernels of hash_embedding and its gradient for NVIDIA GPUs: CUDA C++, compiled by CuPy on first use.

One thread does one element of the output, or of its gradient, so neighbouring threads read neighbouring memory.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly
from oprack.types import FLOATS

SOURCE = Path(__file__).with_name("hash_embedding.cu")
_BLOCK = 256


@functools.cache
def _compiled(name: str, dtype: str) -> Any:
    import cupy

    return cupy.RawKernel(source(dtype), name)


def source(dtype: str) -> str:
    """The CUDA C++ for tables of a dtype."""
    return f"typedef {'float' if dtype == 'float32' else 'double'} T;\n" + SOURCE.read_text(encoding="utf-8")


@kernel("hash_embedding", place="cuda", dtypes=FLOATS)
def hash_embedding(Ids: Array, W: Array, *, hashes: int, xp: ArrayModule) -> Array:
    ids, table = xp.ascontiguousarray(Ids, xp.int64), xp.ascontiguousarray(W)
    out = xp.empty((*Ids.shape, W.shape[1]), W.dtype)
    _launch("gather", out.size, W.dtype.name, (ids, table, out, out.size, *W.shape, hashes))
    return out


@kernel("hash_embedding_grad", place="cuda", dtypes=FLOATS, deterministic=False)
def hash_embedding_grad(Ids: Array, W: ShapeOnly, Out_grad: Array, *, hashes: int, xp: ArrayModule) -> Array:
    ids, grads = xp.ascontiguousarray(Ids, xp.int64), xp.ascontiguousarray(Out_grad)
    table = xp.zeros(W.shape, Out_grad.dtype)
    _launch("scatter", grads.size, grads.dtype.name, (ids, grads, table, grads.size, *W.shape, hashes))
    return table


def _launch(name: str, size: int, dtype: str, arguments: tuple[Any, ...]) -> None:
    if size:
        *arrays, count, rows, width, hashes = arguments
        numbers = (int(n) for n in (count, rows, width, hashes))  # as 64-bit integers, which the source expects
        _compiled(name, dtype)((-(-size // _BLOCK),), (_BLOCK,), (*arrays, *numbers))
