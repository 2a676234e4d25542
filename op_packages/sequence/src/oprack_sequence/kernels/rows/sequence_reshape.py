"""Kernels of sequence_reshape."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import LoDTensor
from oprack.types import FLOATS, INTEGERS

from oprack_sequence.kernels._lod import sequence_offsets, with_lod


@kernel("sequence_reshape", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_reshape(X: Array, *, new_dim: int, ctx: KernelContext) -> LoDTensor:
    """The elements as they are; only shape and LoD change."""
    elements = sequence_offsets(ctx, "X") * X.shape[1]
    uneven = np.flatnonzero(elements % new_dim)
    if len(uneven):
        i = int(uneven[0]) - 1
        raise InvalidArgumentError(
            f"op {ctx.op_type}: sequence {i} of X has {elements[i + 1] - elements[i]} elements; expected a multiple of "
            f"new_dim {new_dim}"
        )
    return with_lod(X.reshape(-1, new_dim).copy(), [*ctx.lod("X")[:-1], elements // new_dim])


@kernel("sequence_reshape_grad", place=("cpu", "cuda"), dtypes=FLOATS | INTEGERS)
def sequence_reshape_grad(X: Array, Out_grad: Array) -> Array:
    """The gradient in the shape of X."""
    return Out_grad.reshape(X.shape).copy()
