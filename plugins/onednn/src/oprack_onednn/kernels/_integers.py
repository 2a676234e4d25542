"""Integers and the numbers that they stand for, as ops on bytes have them."""

from __future__ import annotations

import numpy as np
from oprack.kernel import Array

from oprack_onednn.chain.parameters import is_constant
from oprack_onednn.dnnl.operands import FLOAT, INT8
from oprack_onednn.ops.quantized import GREATEST, LEAST


def rounded(x: Array, step: float) -> Array:
    """The nearest integers to x / step, as floats; ties go to the even one."""
    return np.clip(np.rint(x / x.dtype.type(step)), LEAST, GREATEST)


def restored(x: Array, step: float, dtype: np.dtype) -> Array:
    """Multiples of a step, as floats of a dtype: those nearest to floats, or those that integers stand for."""
    integers = x.astype(dtype) if x.dtype == INT8 else rounded(x.astype(dtype), step)
    return integers * dtype.type(step)


def to_result(y: Array, step: float) -> Array:
    """y itself where there is no step, else the integers as int8."""
    return rounded(y, step).astype(INT8) if step else y


def fits(x: Array, w: Array, steps: Array, bias: Array | None) -> bool:
    """Whether the dtypes are those that primitives multiply, and the parameters constant."""
    rows = [steps] if bias is None else [steps, bias]
    return (
        x.dtype in (FLOAT, INT8)
        and w.dtype == INT8
        and is_constant(w)
        and all(a.dtype == FLOAT and a.ndim == 1 and a.flags.c_contiguous for a in rows)
    )
