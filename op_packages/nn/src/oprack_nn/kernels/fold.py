"""Kernels of fold and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly
from oprack.types import COMPLEX, FLOATS

from oprack_nn.kernels.unfold import PLACES, folded, unfolded


@kernel("fold", place=PLACES, dtypes=FLOATS | COMPLEX)
def fold(
    X: Array,
    *,
    output_sizes: list[int],
    kernel_sizes: list[int],
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    xp: ArrayModule,
) -> Array:
    return folded(X, output_sizes, (kernel_sizes, strides, paddings, dilations), xp)


@kernel("fold_grad", place=PLACES, dtypes=FLOATS | COMPLEX)
def fold_grad(
    X: ShapeOnly,
    Y_grad: Array,
    *,
    kernel_sizes: list[int],
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    xp: ArrayModule,
) -> Array:
    return unfolded(Y_grad, (kernel_sizes, strides, paddings, dilations), xp)
