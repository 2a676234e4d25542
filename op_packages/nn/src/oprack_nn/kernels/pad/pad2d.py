"""Kernels of pad2d and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly
from oprack.types import ALL_DTYPES, FLOATS

from oprack_nn.kernels.pad._family import PLACES, pad_adjoint, padded
from oprack_nn.kernels.resize._resample import numbers
from oprack_nn.ops.pad._family import first_spatial_axis, pairs_2d


@kernel("pad2d", place=PLACES, dtypes=ALL_DTYPES)
def pad2d(
    X: Array,
    Paddings: Array | None = None,
    *,
    paddings: list[int],
    mode: str,
    pad_value: float,
    data_format: str,
    xp: ArrayModule,
) -> Array:
    return padded(X, pairs_2d(numbers(Paddings) or paddings), first_spatial_axis(data_format), mode, pad_value, xp)


@kernel("pad2d_grad", place=PLACES, dtypes=FLOATS)
def pad2d_grad(
    X: ShapeOnly,
    Paddings: Array | None = None,
    Out_grad: Array | None = None,
    *,
    paddings: list[int],
    mode: str,
    data_format: str,
    xp: ArrayModule,
) -> Array:
    pairs = pairs_2d(numbers(Paddings) or paddings)
    return pad_adjoint(Out_grad, pairs, first_spatial_axis(data_format), mode, X.shape, xp)
