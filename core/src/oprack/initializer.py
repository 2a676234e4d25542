"""Initializers of the core, and those that packs bring through the hook oprack_layers."""

from __future__ import annotations

from typing import Any

from oprack.layers.namespace import core_and_packs

_OWN = (
    "Bilinear",
    "BilinearInitializer",
    "Constant",
    "ConstantInitializer",
    "Initializer",
    "MSRA",
    "MSRAInitializer",
    "Normal",
    "NormalInitializer",
    "NumpyArrayInitializer",
    "TruncatedNormal",
    "TruncatedNormalInitializer",
    "Uniform",
    "UniformInitializer",
    "Xavier",
    "XavierInitializer",
)
_getattr, _dir = core_and_packs("initializer", dict.fromkeys(_OWN, "oprack.layers.initializer"))


def __getattr__(name: str) -> Any:
    return _getattr(name)


def __dir__() -> list[str]:
    return _dir()
