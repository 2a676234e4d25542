"""The layer of reduce_any."""

from __future__ import annotations

from oprack_math.layers.reduce._family import reduce_layer

reduce_any = reduce_layer(__name__, "Whether any element is true", stop_gradient=True)
