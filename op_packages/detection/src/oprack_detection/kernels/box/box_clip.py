"""Kernel of box_clip."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, kernel
from oprack.types import FLOATS


@kernel("box_clip", dtypes=FLOATS)
def box_clip(Input: Array, ImInfo: Array, *, ctx: KernelContext) -> Array:
    lod = ctx.lod("Input")
    if len(lod) != 1 or len(lod[0]) - 1 != len(ImInfo):
        raise InvalidArgumentError(
            f"op box_clip: Input has LoD {lod} and ImInfo {len(ImInfo)} rows; expected one LoD level with a "
            "sequence of boxes per image"
        )
    size = np.rint(ImInfo[:, 1::-1] / ImInfo[:, 2:])  # width, height
    last = np.repeat(size - 1, np.diff(lod[0]), axis=0)
    last = np.tile(last, 2).reshape(len(Input), *([1] * (Input.ndim - 2)), 4).astype(Input.dtype)
    return np.maximum(np.minimum(Input, last), Input.dtype.type(0))
