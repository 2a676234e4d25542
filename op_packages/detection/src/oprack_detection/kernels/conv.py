"""Kernels of convolutions."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS

from oprack_detection.kernels.deformable_conv import BOTH, deformable_conv, deformable_conv_grad


@kernel("deformable_conv_v1", place=BOTH, dtypes=FLOATS)
def deformable_conv_v1(
    Input: Array,
    Offset: Array,
    Filter: Array,
    *,
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    deformable_groups: int,
    groups: int,
    im2col_step: int,
    xp: ArrayModule,
) -> Array:
    return deformable_conv(
        Input,
        Offset,
        Filter,
        None,
        strides=strides,
        paddings=paddings,
        dilations=dilations,
        deformable_groups=deformable_groups,
        groups=groups,
        im2col_step=im2col_step,
        xp=xp,
    )


@kernel("deformable_conv_v1_grad", place=BOTH, dtypes=FLOATS, deterministic={"cpu"})
def deformable_conv_v1_grad(
    Input: Array,
    Offset: Array,
    Filter: Array,
    Output_grad: Array,
    *,
    strides: list[int],
    paddings: list[int],
    dilations: list[int],
    deformable_groups: int,
    groups: int,
    im2col_step: int,
    xp: ArrayModule,
) -> dict[str, Array]:
    found = deformable_conv_grad(
        Input,
        Offset,
        Filter,
        None,
        Output_grad,
        strides=strides,
        paddings=paddings,
        dilations=dilations,
        deformable_groups=deformable_groups,
        groups=groups,
        im2col_step=im2col_step,
        xp=xp,
    )
    return {slot: value for slot, value in found.items() if slot != "Mask@GRAD"}
