"""The layer of less_than."""

from __future__ import annotations

from oprack_math.layers.compare._family import compare_layer

less_than = compare_layer(__name__, "<")
