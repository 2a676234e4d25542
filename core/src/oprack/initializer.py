"""Initializers such as `Xavier`, which packs bring through the hook oprack_layers; their base is the core's."""

from __future__ import annotations

from typing import Any

from oprack.layers.namespace import core_and_packs

_getattr, _dir = core_and_packs("initializer", {"Initializer": "oprack.layers.variable"})


def __getattr__(name: str) -> Any:
    return _getattr(name)


def __dir__() -> list[str]:
    return _dir()
