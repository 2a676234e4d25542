"""The layer of elementwise_sub."""

from __future__ import annotations

from oprack_math.layers.elementwise._family import elementwise_layer

elementwise_sub = elementwise_layer(__name__, "x - y.")
