"""Kernel of shard_index."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_tensor.kernels._index import check_index


@kernel("shard_index", place=("cpu", "cuda"), dtypes=("int32", "int64"))
def shard_index(X: Array, *, index_num: int, nshards: int, shard_id: int, ignore_value: int, xp: ArrayModule) -> Array:
    """Indices within the shard."""
    check_index("shard_index", "X", X, index_num, xp)
    size = -(-index_num // nshards)
    return xp.where(X // size == shard_id, X % size, X.dtype.type(ignore_value))
