"""Products of matrices, in shares: the threads of BLAS and those of the loops would wait for each other."""

from __future__ import annotations

from typing import Any

import oprack_math.kernels.matmul as plain
from oprack.kernel import Array, kernel

from oprack_numba.library import LIBRARY, usable

_LEAST = 1 << 14
"""Elements of the first factor from which on a product may be worth a second thread."""


class _Shared:
    """Where the kernels of the pack math look for a product."""

    matmul = staticmethod(LIBRARY.product)


_SHARED: Any = _Shared()


@kernel("mul", dtypes={"float32"}, library="numba", when=usable, priority=5, min_numel=_LEAST)
def mul(X: Array, Y: Array, *, x_num_col_dims: int, y_num_col_dims: int) -> Array:
    return plain.mul(X, Y, x_num_col_dims=x_num_col_dims, y_num_col_dims=y_num_col_dims, xp=_SHARED)


@kernel("matmul", dtypes={"float32"}, library="numba", when=usable, priority=5, min_numel=_LEAST)
def matmul(X: Array, Y: Array, *, transpose_X: bool, transpose_Y: bool, alpha: float, head_number: int) -> Array:
    given: dict[str, Any] = {"transpose_X": transpose_X, "transpose_Y": transpose_Y, "alpha": alpha}
    return plain.matmul(X, Y, **given, head_number=head_number, xp=_SHARED)


@kernel("matmul_v2", dtypes={"float32"}, library="numba", when=usable, priority=5, min_numel=_LEAST)
def matmul_v2(X: Array, Y: Array, *, trans_x: bool, trans_y: bool) -> Array:
    return plain.product(X, Y, trans_x, trans_y, _SHARED)
