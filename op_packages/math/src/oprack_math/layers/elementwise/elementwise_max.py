"""The layer of elementwise_max."""

from __future__ import annotations

from oprack_math.layers.elementwise._family import elementwise_layer

elementwise_max = elementwise_layer(__name__, "The larger of x and y.")
