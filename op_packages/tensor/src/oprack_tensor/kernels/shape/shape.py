"""Kernels of shape."""

from __future__ import annotations

import numpy as np
from oprack.device import constant
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import SelectedRows


@kernel("shape", place=("cpu", "cuda"))
def shape(Input: Array, *, xp: ArrayModule) -> Array:
    return constant(np.array(Input.shape, "int32"), xp).copy()


@kernel("shape", place=("cpu", "cuda"))
def shape_of_rows(Input: SelectedRows, *, xp: ArrayModule) -> Array:
    return constant(np.array(Input.value.shape, "int32"), xp).copy()
