"""Gradients of programs: the gradient ops of the packs, chained, pruned to what is asked for, and summed."""

from __future__ import annotations

from oprack.autodiff.appender import OpAppender, OpRole
from oprack.autodiff.backward import append_backward, gradients
from oprack.autodiff.walk import LostGradientWarning

__all__ = ["LostGradientWarning", "OpAppender", "OpRole", "append_backward", "gradients"]
