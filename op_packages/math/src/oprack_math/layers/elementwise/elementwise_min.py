"""The layer of elementwise_min."""

from __future__ import annotations

from oprack_math.layers.elementwise._family import elementwise_layer

elementwise_min = elementwise_layer(__name__, "The smaller of x and y.")
