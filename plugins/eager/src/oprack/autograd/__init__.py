"""Gradients of eager calls: what is recorded of a call, and the walk back over it."""

from __future__ import annotations

from oprack.autograd.interpreter import AutogradInterpreter
from oprack.autograd.py_layer import PyLayer, PyLayerContext
from oprack.autograd.recompute import recompute
from oprack.autograd.walk import backward, grad

__all__ = ["AutogradInterpreter", "PyLayer", "PyLayerContext", "backward", "grad", "recompute"]
