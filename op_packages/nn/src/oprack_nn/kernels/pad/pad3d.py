"""Kernels of pad3d and its gradients."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import ALL_DTYPES, COMPLEX, FLOATS

from oprack_nn.kernels.pad._family import PLACES, pad_adjoint, padded
from oprack_nn.kernels.resize._resample import numbers
from oprack_nn.ops.pad._family import first_spatial_axis, pairs_3d


@kernel("pad3d", place=PLACES, dtypes=ALL_DTYPES)
def pad3d(X, Paddings=None, *, paddings, mode, value, data_format, xp):
    return padded(X, pairs_3d(numbers(Paddings) or paddings), first_spatial_axis(data_format), mode, value, xp)


@kernel("pad3d_grad", place=PLACES, dtypes=FLOATS | COMPLEX)
def pad3d_grad(X, Paddings=None, Out_grad=None, *, paddings, mode, data_format, xp):
    pairs = pairs_3d(numbers(Paddings) or paddings)
    return pad_adjoint(Out_grad, pairs, first_spatial_axis(data_format), mode, X.shape, xp)


@kernel("pad3d_double_grad", place=PLACES, dtypes=FLOATS | COMPLEX)
def pad3d_double_grad(Paddings=None, grad_x_grad=None, *, paddings, mode, data_format, xp):
    pairs = pairs_3d(numbers(Paddings) or paddings)
    return padded(grad_x_grad, pairs, first_spatial_axis(data_format), mode, 0, xp)
