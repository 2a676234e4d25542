"""The layer of elementwise_div."""

from __future__ import annotations

from oprack_math.layers.elementwise._family import elementwise_layer

elementwise_div = elementwise_layer(__name__, "x / y.")
