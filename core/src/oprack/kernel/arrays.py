"""Names for what kernels compute with, for signatures."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
else:
    # whoever only names the type needs no array library for it
    Array: TypeAlias = Any
"""An array of the place: NumPy's on the host, CuPy's on a GPU. CuPy brings no types, so a type checker sees NumPy's."""

ArrayModule: TypeAlias = ModuleType
"""The array library of the place, NumPy or CuPy, as kernels get it in `xp`."""
