"""ShapesDeviceContext: the place at which arrays have a shape and no elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oprack.device.context import DeviceContext
from oprack.tensor.shape_array import ShapeArray, shape_array


class _Shapes:
    """The few functions of an array library that create arrays."""

    @staticmethod
    def full(shape: Sequence[int], value: Any, dtype: Any) -> ShapeArray:
        """An array of this shape."""
        return shape_array(shape, dtype)


class ShapesDeviceContext(DeviceContext):
    """No memory: arrays are ShapeArrays. What is asked for by value is NaN, or 0 where the dtype has none."""

    xp = _Shapes()

    def from_host(self, array: np.ndarray) -> ShapeArray:
        """The shape of an array.

        Args:
            array: An array in host memory.

        Returns:
            A ShapeArray.
        """
        return shape_array(array.shape, array.dtype)

    def to_host(self, array: Any) -> np.ndarray:
        """An array without meaning: NaN, or 0 where the dtype has none.

        Args:
            array: An array of this place.

        Returns:
            A read-only array of this shape.
        """
        nothing = np.zeros((), array.dtype)
        if array.dtype.kind in ("f", "c"):
            nothing[()] = np.nan
        return np.broadcast_to(nothing, array.shape)

    def synchronize(self) -> None:
        """Do nothing: nothing runs."""
