"""What packs bring for training through the hook oprack_layers: optimizers such as `Adam`, clips and regularizers."""

from __future__ import annotations

from oprack.layers.namespace import core_and_packs

__getattr__, __dir__ = core_and_packs("optimizer")
