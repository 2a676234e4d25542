"""Names for layers that a function of their family makes, since they differ in their op and some words alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def named(layer: Callable[..., Any], module: str, name: str, doc: str) -> Callable[..., Any]:
    """`layer` as if `module` defined it under `name`, with `doc`."""
    layer.__name__ = layer.__qualname__ = name
    layer.__module__, layer.__doc__ = module, doc
    return layer
