"""Gradients of programs: the gradient ops of the packs, chained, pruned to what is asked for, and summed."""

from oprack.autodiff.backward import append_backward, gradients

__all__ = ["append_backward", "gradients"]
