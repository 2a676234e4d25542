"""The layer of reduce_max."""

from __future__ import annotations

from oprack_math.layers.reduce._family import reduce_layer

reduce_max = reduce_layer(__name__, "Maximum")
