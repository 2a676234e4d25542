"""Kernel of check_numerics."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import COMPLEX, FLOATS, HALF_FLOATS


@kernel("check_numerics", place=("cpu", "cuda"), dtypes=FLOATS | HALF_FLOATS | COMPLEX)
def check_numerics(
    tensor: Array, *, op_type: str, var_name: str, check_nan_inf_level: int, xp: ArrayModule
) -> tuple[Array, Array]:
    """Three counts and three values; the counts are read back where they decide."""
    x = xp.abs(tensor) if tensor.dtype.kind == "c" else tensor
    x = x.astype(xp.float32) if x.dtype.itemsize < 4 else x
    stats = xp.stack([xp.isnan(x).sum(), xp.isinf(x).sum(), (x == 0).sum()]).astype(xp.int64)
    if check_nan_inf_level == 0 and stats[:2].any():
        nan, inf = (int(n) for n in stats[:2])
        raise InvalidArgumentError(
            f"op check_numerics: {var_name or 'tensor'}{f' of op {op_type}' if op_type else ''} holds {nan} NaN and "
            f"{inf} infinities in {x.size} elements; expected finite numbers (check_nan_inf_level=1 only counts them)"
        )
    if not x.size:
        return stats, xp.zeros(3, xp.float32)
    nan = xp.isnan(x)
    greatest, least = xp.where(nan, -xp.inf, x).max(), xp.where(nan, xp.inf, x).min()
    return stats, xp.stack([greatest, least, x.mean()]).astype(xp.float32)
