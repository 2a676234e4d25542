"""Models in integers, as packs bring them by the hook oprack_layers: `oprack.quantization.quantize_post_training`."""

from __future__ import annotations

from typing import Any

from oprack.layers.namespace import core_and_packs

_getattr, _dir = core_and_packs("quantization")


def __getattr__(name: str) -> Any:
    return _getattr(name)


def __dir__() -> list[str]:
    return _dir()
