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
    import warnings

    from oprack.packs.manager import default_manager

    warnings.warn(
        f"oprack.autodiff.{name} will be gone in the next release; write oprack.optimizer.{name}",
        DeprecationWarning,
        stacklevel=2,
    )
    return default_manager().layer("optimizer", name)
