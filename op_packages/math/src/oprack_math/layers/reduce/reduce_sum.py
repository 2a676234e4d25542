"""The layer of reduce_sum."""

from __future__ import annotations

from oprack_math.layers.reduce._family import reduce_layer

reduce_sum = reduce_layer(__name__, "Sum")
