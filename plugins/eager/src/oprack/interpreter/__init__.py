"""One functional call, run now or written down: OpExpr, modes, and the interpreters that modes choose from."""

from __future__ import annotations

from oprack.eager_tensor.devices import seed
from oprack.interpreter.base import Interpreter, Wrapped
from oprack.interpreter.eager import EagerInterpreter
from oprack.interpreter.lazy import LazyInterpreter
from oprack.interpreter.modes import (
    apply,
    deterministic,
    enable_grad,
    is_grad_enabled,
    no_grad,
    reference,
    register_interpreter,
    set_grad_enabled,
    static_mode,
    wrapped,
)
from oprack.interpreter.op_expr import OpExpr
from oprack.interpreter.source import source_of
from oprack.interpreter.wrappers import autocast, check_finite, log_calls

__all__ = [
    "EagerInterpreter",
    "Interpreter",
    "LazyInterpreter",
    "OpExpr",
    "Wrapped",
    "apply",
    "autocast",
    "check_finite",
    "deterministic",
    "enable_grad",
    "is_grad_enabled",
    "log_calls",
    "no_grad",
    "reference",
    "register_interpreter",
    "seed",
    "set_grad_enabled",
    "source_of",
    "static_mode",
    "wrapped",
]
