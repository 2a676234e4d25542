"""Attributes that many ops of old programs carry for other kernel libraries."""

from __future__ import annotations

from oprack.op import Attr

DATA_FORMAT = Attr("AnyLayout", "Memory layout of old programs.", extra=True)
