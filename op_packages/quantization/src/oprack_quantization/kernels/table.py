"""Kernels of tables of quantized numbers."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel


# dequantize_log -------------------------------------------------------------------------------------------------------
@kernel("dequantize_log", place=("cpu", "cuda"), dtypes={"int8"})
def dequantize_log(X: Array, Dict: Array, *, xp: ArrayModule) -> Array:
    """Numbers of the dictionary, with the sign of X."""
    return xp.concatenate([Dict, -Dict])[X.astype(xp.int64) % 256]


# lookup_table_dequant -------------------------------------------------------------------------------------------------
@kernel("lookup_table_dequant", place="cpu", dtypes={"float32"})
def lookup_table_dequant(W: Array, Ids: Array, *, padding_idx: int, xp: ArrayModule) -> Array:
    """Rows whose bytes are stretched to their range."""
    ids = Ids.reshape(Ids.shape[:-1])
    if ids.size and not (ids.min() >= 0 and ids.max() < len(W)):
        raise InvalidArgumentError(
            f"op lookup_table_dequant: Ids has numbers from {ids.min()} to {ids.max()}; expected 0 to {len(W) - 1}, "
            f"the rows of W {list(W.shape)}"
        )
    rows = W[ids]
    least, most = rows[..., :1], rows[..., 1:2]
    levels = xp.ascontiguousarray(rows[..., 2:]).view(xp.uint8)
    out = least + levels * ((most - least) / W.dtype.type(256))
    if padding_idx != -1:
        out[ids == padding_idx] = 0
    return out.astype(W.dtype, copy=False)
