"""Kernels of conv3d_transpose and its gradient."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_nn.kernels._layout import to_channel_first
from oprack_nn.kernels.conv._conv_transpose import PLACES, conv_transpose_grad, geometry, output_dims, transpose


@kernel("conv3d_transpose", place=PLACES, dtypes=FLOATS)
def conv3d_transpose(
    Input: Array,
    Filter: Array,
    *,
    output_size: list[int],
    output_padding: list[int],
    data_format: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> Array:
    geo = geometry(Input, Filter, ctx.attrs, data_format)
    size = output_dims(to_channel_first(Input, data_format).shape[2:], geo, output_size, output_padding)
    return transpose(Input, Filter, geo, size, data_format, xp)


conv3d_transpose_grad = kernel("conv3d_transpose_grad", place=PLACES, dtypes=FLOATS)(conv_transpose_grad)
