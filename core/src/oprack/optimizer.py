"""Gradient clips and regularizers of the core; optimizers such as `Adam` come from packs, by the hook oprack_layers."""

from __future__ import annotations

from typing import Any

from oprack.layers.namespace import core_and_packs

_CLIPS = ("ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "GradientClip")
_DECAYS = ("L1Decay", "L2Decay", "WeightDecay")
_getattr, _dir = core_and_packs("optimizer", dict.fromkeys((*_CLIPS, *_DECAYS), "oprack.autodiff"))


def __getattr__(name: str) -> Any:
    return _getattr(name)


def __dir__() -> list[str]:
    return _dir()
