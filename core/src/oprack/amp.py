"""Mixed precision, as packs bring it through the hook oprack_layers: `oprack.amp.autocast`, `oprack.amp.GradScaler`."""

from __future__ import annotations

from typing import Any

from oprack.layers.namespace import core_and_packs

_getattr, _dir = core_and_packs("amp")


def __getattr__(name: str) -> Any:
    return _getattr(name)


def __dir__() -> list[str]:
    return _dir()
