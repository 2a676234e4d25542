"""memcpy: all of the op but its kernels."""

from __future__ import annotations

from oprack_tensor.ops.copy._copies import DST_PLACE_TYPE, CopyOf


class Memcpy(CopyOf, type="memcpy"):
    r"""$$Out = X$$"""

    dst_place_type = DST_PLACE_TYPE
