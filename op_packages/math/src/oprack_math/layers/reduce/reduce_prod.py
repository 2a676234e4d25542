"""The layer of reduce_prod."""

from __future__ import annotations

from oprack_math.layers.reduce._family import reduce_layer

reduce_prod = reduce_layer(__name__, "Product")
