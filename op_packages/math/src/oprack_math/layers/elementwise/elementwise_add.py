"""The layer of elementwise_add."""

from __future__ import annotations

from oprack_math.layers.elementwise._family import elementwise_layer

elementwise_add = elementwise_layer(__name__, "x + y.")
