"""The layer of elementwise_floordiv."""

from __future__ import annotations

from oprack_math.layers.elementwise._family import elementwise_layer

elementwise_floordiv = elementwise_layer(__name__, "x / y, rounded down.")
