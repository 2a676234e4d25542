"""Devices: one DeviceContext per place, found through a pool, and the transform of data between places and layouts."""

from oprack.device.context import CPUDeviceContext, DeviceContext
from oprack.device.pool import DeviceContextPool
from oprack.device.transform import (
    host_array,
    register_layout_transform,
    transform_layout,
    transform_rows,
    transform_tensor,
    transform_value,
)

__all__ = [
    "CPUDeviceContext",
    "DeviceContext",
    "DeviceContextPool",
    "host_array",
    "register_layout_transform",
    "transform_layout",
    "transform_rows",
    "transform_tensor",
    "transform_value",
]
