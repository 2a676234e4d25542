"""The layer of elementwise_mod."""

from __future__ import annotations

from oprack_math.layers.elementwise._family import elementwise_layer

elementwise_mod = elementwise_layer(__name__, "Remainder of x / y, with the sign of y.")
