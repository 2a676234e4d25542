"""The layer of reduce_mean."""

from __future__ import annotations

from oprack_math.layers.reduce._family import reduce_layer

reduce_mean = reduce_layer(__name__, "Mean")
