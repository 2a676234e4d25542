"""The layer of reduce_min."""

from __future__ import annotations

from oprack_math.layers.reduce._family import reduce_layer

reduce_min = reduce_layer(__name__, "Minimum")
