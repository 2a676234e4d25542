"""memcpy_h2d: all of the op but its kernels."""

from __future__ import annotations

from oprack_tensor.ops.copy._copies import DST_PLACE_TYPE, CopyOf


class MemcpyH2d(CopyOf, type="memcpy_h2d"):
    r"""$$Out = X$$ from the host to a device."""

    dst_place_type = DST_PLACE_TYPE
