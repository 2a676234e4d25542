"""The layer of elementwise_pow."""

from __future__ import annotations

from oprack_math.layers.elementwise._family import elementwise_layer

elementwise_pow = elementwise_layer(__name__, "x to the power of y.")
