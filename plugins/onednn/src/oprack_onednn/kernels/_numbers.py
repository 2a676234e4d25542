"""Numbers between ops: NaN and infinities, bfloat16 as NumPy has it, and integers that stand for multiples."""

from __future__ import annotations

import math

import numpy as np
from oprack.kernel import Array

from oprack_onednn.chain.parameters import is_constant
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, INT8
from oprack_onednn.ops.quantized import GREATEST, LEAST

NOT_ORDINARY = "the array holds NaN or infinities"


def is_ordinary(array: np.ndarray) -> bool:
    """Whether a float array holds no NaN and no infinity. NumPy's maximum and minimum hand on NaN."""
    if not array.size:
        return True
    row = array.ravel("K")  # a view where the array is dense
    # Two passes without memory of their own; isfinite would write a mask as long as the array.
    return math.isfinite(float(row.max()) - float(row.min()))


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


def serves_quantized(x: Array, w: Array, steps: Array, bias: Array | None) -> bool:
    """Whether the dtypes are those that primitives multiply, and the parameters constant."""
    rows = [steps] if bias is None else [steps, bias]
    return (
        LIBRARY.has_int8()  # sums of pairs of products saturate on others
        and x.dtype in (FLOAT, INT8)
        and w.dtype == INT8
        and is_constant(w)
        and all(a.dtype == FLOAT and a.ndim == 1 and a.flags.c_contiguous for a in rows)
    )
