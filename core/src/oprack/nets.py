"""Groups of layers of the installed packs, which bring them through the hook oprack_layers."""

from __future__ import annotations

from oprack.layers.namespace import core_and_packs

__getattr__, __dir__ = core_and_packs("nets")
