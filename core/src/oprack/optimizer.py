"""What packs bring for training through the hook oprack_layers: optimizers such as `Adam`, clips and regularizers."""

from __future__ import annotations

from typing import Any

from oprack.layers.namespace import core_and_packs

_getattr, _dir = core_and_packs("optimizer")


def __getattr__(name: str) -> Any:
    return _getattr(name)


def __dir__() -> list[str]:
    return _dir()
