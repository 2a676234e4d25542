"""Devices: one DeviceContext per place, found through a pool, and the transform of data between places and layouts."""

from oprack.device.context import CPUDeviceContext, DeviceContext
from oprack.device.pool import DeviceContextPool
from oprack.device.transform import register_layout_transform, transform_layout, transform_tensor

__all__ = [
    "CPUDeviceContext",
    "DeviceContext",
    "DeviceContextPool",
    "register_layout_transform",
    "transform_layout",
    "transform_tensor",
]
