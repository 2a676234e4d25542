"""The layer of not_equal."""

from __future__ import annotations

from oprack_math.layers.compare._family import compare_layer

not_equal = compare_layer(__name__, "!=")
