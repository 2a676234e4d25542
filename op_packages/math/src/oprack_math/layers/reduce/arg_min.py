"""The layer of arg_min."""

from __future__ import annotations

from oprack_math.layers.reduce._family import position_layer

argmin = position_layer(__name__, "argmin", "smallest element")
