"""Kernels of pad3d and its gradients."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly
from oprack.types import ALL_DTYPES, COMPLEX, FLOATS

from oprack_nn.kernels.pad._family import PLACES, pad_adjoint, padded
from oprack_nn.kernels.resize._resample import numbers
from oprack_nn.ops.pad._family import first_spatial_axis, pairs_3d


@kernel("pad3d", place=PLACES, dtypes=ALL_DTYPES)
def pad3d(
    X: Array,
    Paddings: Array | None = None,
    *,
    paddings: list[int],
    mode: str,
    value: float,
    data_format: str,
    xp: ArrayModule,
) -> Array:
    return padded(X, pairs_3d(numbers(Paddings) or paddings), first_spatial_axis(data_format), mode, value, xp)


@kernel("pad3d_grad", place=PLACES, dtypes=FLOATS | COMPLEX)
def pad3d_grad(
    X: ShapeOnly,
    Paddings: Array | None = None,
    Out_grad: Array | None = None,
    *,
    paddings: list[int],
    mode: str,
    data_format: str,
    xp: ArrayModule,
) -> Array:
    pairs = pairs_3d(numbers(Paddings) or paddings)
    return pad_adjoint(Out_grad, pairs, first_spatial_axis(data_format), mode, X.shape, xp)


@kernel("pad3d_double_grad", place=PLACES, dtypes=FLOATS | COMPLEX)
def pad3d_double_grad(
    Paddings: Array | None = None,
    grad_x_grad: Array | None = None,
    *,
    paddings: list[int],
    mode: str,
    data_format: str,
    xp: ArrayModule,
) -> Array:
    pairs = pairs_3d(numbers(Paddings) or paddings)
    return padded(grad_x_grad, pairs, first_spatial_axis(data_format), mode, 0, xp)
