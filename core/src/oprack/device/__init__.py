"""Devices: one DeviceContext per place, found through a pool, and the transform of data between places."""

from __future__ import annotations

from oprack.device.context import CPUDeviceContext, DeviceContext, DeviceContextPool, constant, set_constant_store
from oprack.device.transform import (
    dense_rows,
    host_array,
    merged_rows,
    row_totals,
    transform_sparse,
    transform_tensor,
    transform_value,
)

__all__ = [
    "CPUDeviceContext",
    "DeviceContext",
    "DeviceContextPool",
    "constant",
    "dense_rows",
    "host_array",
    "merged_rows",
    "row_totals",
    "set_constant_store",
    "transform_sparse",
    "transform_tensor",
    "transform_value",
]
