"""The layer of arg_max."""

from __future__ import annotations

from oprack_math.layers.reduce._family import position_layer

argmax = position_layer(__name__, "argmax", "largest element")
