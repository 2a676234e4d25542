"""Gradients of programs: the gradient ops of the packs, chained, pruned to what is asked for, and summed."""

from __future__ import annotations

from typing import Any

from oprack.autodiff.appender import OpAppender
from oprack.autodiff.backward import append_backward, gradients
from oprack.autodiff.roles import OpRole

__all__ = ["OpAppender", "OpRole", "append_backward", "gradients"]

# Names that moved to the pack of the optimizers; here for one more release.
_MOVED = (
    "ClipGradByGlobalNorm",
    "ClipGradByNorm",
    "ClipGradByValue",
    "GradientClip",
    "L1Decay",
    "L2Decay",
    "WeightDecay",
    "append_regularization",
)


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module 'oprack.autodiff' has no attribute {name!r}")
    from oprack.deprecation import deprecated
    from oprack.packs.manager import default_manager

    deprecated(f"oprack.autodiff.{name}", f"write oprack.optimizer.{name}")
    return default_manager().layer("optimizer", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
