"""Products of two matrices, and loops over rows, in shapes that are other ones in each step of a training (dense.c)."""

from __future__ import annotations

import math
from ctypes import Structure, addressof, c_float, c_int64, c_void_p, cast

from oprack.kernel import Array

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import BUFFERS
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, address

ADDED, ROW_ADDED, WHERE_POSITIVE, COPIED, COLUMN_SUMS = range(5)
"""x + y; x + y of one row; x where y is above 0; x; the sum of the rows of x."""
_SHARED = 1 << 15  # elements from which on threads share a loop
_SHARED_PRODUCT = 1 << 20  # multiplications


class _Product(Structure):
    """The struct of dense.c, field by field."""

    _fields_ = (
        ("multiply", c_void_p),
        *((name, c_int64) for name in ("turned_x", "turned_y", "rows", "columns", "inner", "x_row", "y_row")),
        *((name, c_void_p) for name in ("x", "y", "out")),
        ("alpha", c_float),
    )


class _Dense(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("kind", "rows", "columns")),
        *((name, c_void_p) for name in ("x", "y", "out")),
    )


def multiply(x: Array, y: Array, alpha: float, shape: tuple[int, ...]) -> Array | None:
    """alpha x y of matrices that are not empty, in a shape with as many elements; None where oneDNN can't read them."""
    if RUNNER.product is None or not THREAD.ready():
        return None
    of_x, of_y = _way(x), _way(y)
    if of_x is None or of_y is None:
        return None
    (turned_x, x_row), (turned_y, y_row) = of_x, of_y
    (rows, inner), columns = x.shape, y.shape[1]
    out = BUFFERS.take(shape)
    call = _Product(
        cast(LIBRARY.lib.dnnl_sgemm, c_void_p).value,
        *(turned_x, turned_y, rows, columns, inner, x_row, y_row),
        *(address(x), address(y), address(out), alpha),
    )
    threads = THREAD.threads
    THREAD.use(THREAD.max_threads if rows * inner * columns >= _SHARED_PRODUCT else 1)
    try:
        return None if RUNNER.product(addressof(call)) else out
    finally:
        THREAD.use(threads)


def _way(a: Array) -> tuple[bool, int] | None:
    """Whether the columns of a matrix lie one after the other instead of its rows, and the elements between two."""
    if a.dtype != FLOAT or not a.flags.aligned:
        return None
    for turned, (count, width), (step, unit) in (
        (False, a.shape, a.strides),
        (True, a.shape[::-1], a.strides[::-1]),
    ):
        least = width * a.itemsize
        if (unit == a.itemsize or width == 1) and (count == 1 or (step >= least and not step % a.itemsize)):
            return turned, width if count == 1 else step // a.itemsize
    return None


def loop(kind: int, x: Array, y: Array | None = None, out: Array | None = None) -> Array | None:
    """One of the loops over row-major arrays; None where NumPy has to do it.

    Args:
        kind: What is computed.
        x: Of two dims for ROW_ADDED and COLUMN_SUMS.
        y: Of x's shape, or x's last dim; None for COPIED and COLUMN_SUMS.
        out: Where the result may be; it is x or y, or none of their elements.

    Returns:
        The result: of x's shape, of COLUMN_SUMS its last dim.
    """
    given = [x] if y is None else [x, y]
    if RUNNER.dense is None or not x.size or not THREAD.ready():
        return None
    if not all(a.dtype == FLOAT and a.flags.c_contiguous and a.flags.aligned for a in given):
        return None
    shape = x.shape[-1:] if kind == COLUMN_SUMS else x.shape
    usable = out is not None and out.shape == shape and out.flags.c_contiguous and out.flags.aligned
    found = out if out is not None and usable and out.flags.writeable else BUFFERS.take(shape)
    rows, columns = (math.prod(x.shape[:-1]), x.shape[-1]) if x.ndim else (1, 1)
    call = _Dense(kind, rows, columns, address(x), 0 if y is None else address(y), address(found))
    RUNNER.dense(addressof(call), THREAD.max_threads if x.size >= _SHARED else 1)
    return found
