"""Data for training: datasets and samplers, the DataLoader and its workers; users find all of it in `oprack.io`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _DataModule(ModuleType):
    """`oprack.data` is this package, and a function that declares an input of a program, as Fluid's `data`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The same as `oprack.layers.data`."""
        from oprack.layers import data

        return data(*args, **kwargs)


sys.modules[__name__].__class__ = _DataModule
