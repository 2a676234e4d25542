"""The layer of logical_xor."""

from __future__ import annotations

from oprack_math.layers.logical._family import logical_layer

logical_xor = logical_layer(__name__, "xor")
