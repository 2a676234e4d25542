"""Initializers such as `Xavier`, which packs bring through the hook oprack_layers; their base is the core's."""

from __future__ import annotations

from oprack.layers.namespace import core_and_packs

__getattr__, __dir__ = core_and_packs("initializer", {"Initializer": "oprack.layers.variable"})
