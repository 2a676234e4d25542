"""Layers that are made from the OpProtos of their ops."""

from __future__ import annotations

from oprack.layers import generated_layers

__getattr__ = generated_layers(
    "abs",
    "ceil",
    "cos",
    "erf",
    "exp",
    "floor",
    "log",
    "reciprocal",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sqrt",
    "square",
    "tanh",
    mean="mean",
    clip_by_norm="clip_by_norm",
    cumsum="cumsum",
)
