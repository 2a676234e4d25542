"""The layer of logical_or."""

from __future__ import annotations

from oprack_math.layers.logical._family import logical_layer

logical_or = logical_layer(__name__, "or")
