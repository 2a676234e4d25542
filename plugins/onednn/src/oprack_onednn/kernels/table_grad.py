"""Dense gradients of tables, for which fresh memory takes NumPy longer than adding rows; and sgd in some rows."""

from __future__ import annotations

from ctypes import Structure, addressof, c_float, c_int64, c_void_p

import numpy as np
from oprack.kernel import Array
from oprack.tensor import SelectedRows, ShapeOnly

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import TRAINING_BUFFERS
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.kernels.declare import onednn_kernel

_SHARED = 1 << 17
"""Elements of a table from which on threads share the work."""


class _Rows(Structure):
    """The struct of rows.c, field by field."""

    _fields_ = (
        *((name, c_int64) for name in ("count", "width", "height")),
        *((name, c_void_p) for name in ("ids", "values", "out")),
        ("rate", c_float),
    )


@onednn_kernel("lookup_table_grad", "lookup_table_v2_grad", unread=("W", "Ids"))
def table_grad(W: ShapeOnly, Ids: Array, Out_grad: Array, *, is_sparse: bool, padding_idx: int) -> Array:
    if is_sparse or RUNNER.add_rows is None or len(W.shape) != 2 or W.dtype != FLOAT:
        return NotImplemented
    if not Out_grad.size:
        return NotImplemented
    ids, values, (height, width) = np.ascontiguousarray(Ids), np.ascontiguousarray(Out_grad), W.shape
    if not (ids.flags.aligned and values.flags.aligned):
        return NotImplemented
    if values.dtype != FLOAT or values.size != ids.size * width or not THREAD.ready():
        return NotImplemented
    if not _are_rows(ids, height):
        return NotImplemented  # NumPy's kernel says what is wrong
    out = TRAINING_BUFFERS.take((height, width))
    rows = _Rows(ids.size, width, height, address(ids), address(values), address(out))
    RUNNER.add_rows(addressof(rows), THREAD.max_threads if out.size >= _SHARED else 1)
    if 0 <= padding_idx < height:
        out[padding_idx] = 0
    return out


def _are_rows(ids: Array, height: int) -> bool:
    """Whether native code may take ids for numbers of rows."""
    return ids.dtype == np.int64 and ids.size > 0 and ids.min() >= 0 and ids.max() < height


@onednn_kernel("sgd")
def sgd_rows(
    Param: Array,
    LearningRate: Array,
    Grad: SelectedRows,
    MasterParam: Array | None = None,
    *,
    out: Array | None = None,
) -> tuple[Array, Array | None]:
    values = Grad.value
    if RUNNER.sgd_rows is None or MasterParam is not None or not LearningRate.size or not LIBRARY.usable():
        return NotImplemented
    if any(a.dtype != FLOAT or a.ndim != 2 or not a.flags.c_contiguous for a in (Param, values)):
        return NotImplemented
    if not all(a.flags.aligned for a in (Param, values, Grad.rows)):
        return NotImplemented
    if values.shape != (len(Grad.rows), Param.shape[1]) or not _are_rows(Grad.rows, len(Param)):
        return NotImplemented
    new = Param.copy() if out is None or out is not Param or not out.flags.writeable else out
    ids = np.ascontiguousarray(Grad.rows)
    rate = LearningRate.reshape(-1)[0]
    rows = _Rows(ids.size, values.shape[1], len(new), address(ids), address(values), address(new), rate)
    if RUNNER.sgd_rows(addressof(rows)):
        return NotImplemented
    return new, None
