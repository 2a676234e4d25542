"""Models in integers, as packs bring them by the hook oprack_layers: `oprack.quantization.quantize_post_training`."""

from __future__ import annotations

from oprack.layers.namespace import core_and_packs

__getattr__, __dir__ = core_and_packs("quantization")
