"""The layer of reduce_all."""

from __future__ import annotations

from oprack_math.layers.reduce._family import reduce_layer

reduce_all = reduce_layer(__name__, "Whether all elements are true", stop_gradient=True)
