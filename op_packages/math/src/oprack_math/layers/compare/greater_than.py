"""The layer of greater_than."""

from __future__ import annotations

from oprack_math.layers.compare._family import compare_layer

greater_than = compare_layer(__name__, ">")
