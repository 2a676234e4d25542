"""memcpy_d2h: all of the op but its kernels."""

from __future__ import annotations

from oprack_tensor.ops.copy._copies import DST_PLACE_TYPE, CopyOf


class MemcpyD2h(CopyOf, type="memcpy_d2h"):
    r"""$$Out = X$$ from a device to the host."""

    dst_place_type = DST_PLACE_TYPE
