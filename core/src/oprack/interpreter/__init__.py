"""One functional call, run now or written down: OpExpr, eager tensors, autograd, and the way into programs."""

from __future__ import annotations

from oprack.interpreter.autograd import AutogradInterpreter, backward, grad
from oprack.interpreter.base import Interpreter, Wrapped
from oprack.interpreter.compiled import jit
from oprack.interpreter.containers import ModuleList, Sequential
from oprack.interpreter.eager import EagerInterpreter
from oprack.interpreter.lazy import LazyInterpreter
from oprack.interpreter.modes import deterministic, enable_grad, is_grad_enabled, no_grad, static_mode, wrapped
from oprack.interpreter.module import Module
from oprack.interpreter.op_expr import OpExpr
from oprack.interpreter.parameter import Parameter, create_parameter
from oprack.interpreter.slopes import gradcheck
from oprack.interpreter.tensor import Tensor, to_tensor
from oprack.interpreter.trace import seed
from oprack.interpreter.traced import InputSpec, TracedProgram, to_program
from oprack.interpreter.update import Updates
from oprack.interpreter.wrappers import autocast, check_finite, recorded

__all__ = [
    "AutogradInterpreter",
    "EagerInterpreter",
    "InputSpec",
    "Interpreter",
    "LazyInterpreter",
    "Module",
    "ModuleList",
    "OpExpr",
    "Parameter",
    "Sequential",
    "Tensor",
    "TracedProgram",
    "Updates",
    "Wrapped",
    "autocast",
    "backward",
    "check_finite",
    "create_parameter",
    "deterministic",
    "enable_grad",
    "grad",
    "gradcheck",
    "is_grad_enabled",
    "jit",
    "no_grad",
    "recorded",
    "seed",
    "static_mode",
    "to_program",
    "to_tensor",
    "wrapped",
]
