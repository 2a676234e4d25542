"""Mixed precision, as packs bring it through the hook oprack_layers: `oprack.amp.autocast`, `oprack.amp.GradScaler`."""

from __future__ import annotations

from oprack.layers.namespace import core_and_packs

__getattr__, __dir__ = core_and_packs("amp")
