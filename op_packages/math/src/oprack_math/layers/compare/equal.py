"""The layer of equal."""

from __future__ import annotations

from oprack_math.layers.compare._family import compare_layer

equal = compare_layer(__name__, "==")
