"""Devices: one DeviceContext per place, found through a pool, and the transform of data between places."""

from __future__ import annotations

from typing import Any

from oprack.device.constants import constant, set_constant_store
from oprack.device.context import CPUDeviceContext, DeviceContext
from oprack.device.pool import DeviceContextPool
from oprack.device.rows import dense_rows, merged_rows, row_totals
from oprack.device.transform import host_array, transform_sparse, transform_tensor, transform_value

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


def __getattr__(name: str) -> Any:
    from oprack.deprecation import deprecated

    if name == "transform_rows":
        deprecated("oprack.device.transform_rows", "write transform_sparse, which takes any sparse value")
        return transform_sparse
    if name not in ("register_layout_transform", "transform_layout"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from oprack.device import layouts

    deprecated(
        f"oprack.device.{name}",
        "call the function that transposes the array where the array is used: no kernel has a layout of its own",
    )
    return getattr(layouts, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
