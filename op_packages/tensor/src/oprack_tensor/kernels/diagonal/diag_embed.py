"""Kernel of diag_embed."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel

from oprack_tensor.kernels.diagonal._family import with_diagonal


@kernel("diag_embed", place=("cpu", "cuda"))
def diag_embed(Input: Array, *, offset: int, dim1: int, dim2: int, xp: ArrayModule) -> Array:
    """Matrices with Input on a diagonal."""
    size, shape = Input.shape[-1] + abs(offset), list(Input.shape[:-1])
    for axis in sorted(a % (Input.ndim + 1) for a in (dim1, dim2)):
        shape.insert(axis, size)
    return with_diagonal(tuple(shape), Input, offset, dim1, dim2, xp)
