"""The layer of logical_and."""

from __future__ import annotations

from oprack_math.layers.logical._family import logical_layer

logical_and = logical_layer(__name__, "and")
