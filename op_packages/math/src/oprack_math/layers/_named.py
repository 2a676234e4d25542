"""Names for layers that a function of their family makes, since they differ in their op and some words alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def named(layer: Callable[..., Any], module: str, doc: str, name: str | None = None) -> Callable[..., Any]:
    """`layer` as if `module` (its __name__) defined it under `name`, by default the module's own, with `doc`."""
    layer.__name__ = layer.__qualname__ = name or op_type_of(module)
    layer.__module__, layer.__doc__ = module, doc
    return layer


def op_type_of(module: str) -> str:
    """The op type after which a module is named."""
    return module.rpartition(".")[2]
