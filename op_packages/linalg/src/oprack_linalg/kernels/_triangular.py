"""Systems of equations whose matrix is a triangle."""

from __future__ import annotations

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule

from oprack_linalg.kernels._matrices import broadcast, solve, triangle

_MANY_ROWS = 64
"""From this size on LAPACK's routine for triangles, called for one matrix at a time, is faster than a batched one."""


def solve_triangle(
    op_type: str,
    slot: str,
    a: Array,
    b: Array,
    *,
    upper: bool,
    transpose: bool = False,
    unit: bool = False,
    xp: ArrayModule,
) -> Array:
    """The X of A X = B for the triangle A, batch dims broadcast.

    Args:
        op_type: The op, for the error.
        slot: The input that `a` comes from.
        a: [..., N, N], of which one triangle is read.
        b: [..., N, K].
        upper: Which triangle.
        transpose: Solve with its transpose.
        unit: Take the diagonal for ones.
        xp: NumPy or CuPy.

    Raises:
        InvalidArgumentError: A number on a diagonal is zero.
    """
    if xp is np and a.shape[-1] >= _MANY_ROWS:
        return _by_lapack(op_type, slot, *broadcast(a, b, xp), upper=upper, transpose=transpose, unit=unit)
    a = triangle(a, upper, unit, xp)
    if unit:
        a = a + xp.eye(a.shape[-1], dtype=a.dtype)
    if transpose:
        a, upper = a.swapaxes(-1, -2), not upper
    if upper:
        return solve(op_type, slot, a, b, xp)
    # with rows and columns in reverse order it is an upper triangle, in which elimination has nothing to do
    return solve(op_type, slot, a[..., ::-1, ::-1], b[..., ::-1, :], xp)[..., ::-1, :]


def _by_lapack(op_type: str, slot: str, a: Array, b: Array, *, upper: bool, transpose: bool, unit: bool) -> Array:
    from scipy.linalg.lapack import get_lapack_funcs

    (trtrs,) = get_lapack_funcs(("trtrs",), (a, b))
    out = np.empty(b.shape, b.dtype)
    for at in np.ndindex(a.shape[:-2]):
        # LAPACK's matrices go by columns, so that it sees the transpose of ours
        found, info = trtrs(a[at].T, b[at], lower=upper, trans=not transpose, unitdiag=unit)
        if info > 0:
            raise InvalidArgumentError(
                f"op {op_type}: the triangle of a matrix of {slot} has 0 on its diagonal, in row {info - 1}; expected "
                "none, since such a system has no solution"
            )
        out[at] = found
    return out
