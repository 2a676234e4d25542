"""Dtypes that layers of losses take."""

from __future__ import annotations

from oprack.types import FLOATS, HALF_FLOATS

FLOATING = FLOATS | HALF_FLOATS
