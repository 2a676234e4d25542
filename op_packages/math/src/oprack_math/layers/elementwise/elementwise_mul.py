"""The layer of elementwise_mul."""

from __future__ import annotations

from oprack_math.layers.elementwise._family import elementwise_layer

elementwise_mul = elementwise_layer(__name__, "x * y.")
