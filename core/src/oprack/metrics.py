"""Metrics of the installed packs: `oprack.metrics.Accuracy` and others come through the hook oprack_layers."""

from __future__ import annotations

from oprack.layers.namespace import core_and_packs

__getattr__, __dir__ = core_and_packs("metrics")
