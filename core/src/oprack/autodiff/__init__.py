"""Gradients of programs: the gradient ops of the packs, chained, pruned to what is asked for, and summed."""

from oprack.autodiff.backward import append_backward, gradients
from oprack.autodiff.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue, GradientClip
from oprack.autodiff.regularizer import L1Decay, L2Decay, WeightDecay, append_regularization

__all__ = [
    "ClipGradByGlobalNorm",
    "ClipGradByNorm",
    "ClipGradByValue",
    "GradientClip",
    "L1Decay",
    "L2Decay",
    "WeightDecay",
    "append_backward",
    "append_regularization",
    "gradients",
]
