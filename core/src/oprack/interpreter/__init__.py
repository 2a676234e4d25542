"""One functional call, run now or written down: OpExpr, modes, and the interpreters that modes choose from."""

from __future__ import annotations

from typing import Any

from oprack.interpreter.base import Interpreter, Wrapped
from oprack.interpreter.devices import seed
from oprack.interpreter.eager import EagerInterpreter
from oprack.interpreter.lazy import LazyInterpreter
from oprack.interpreter.modes import (
    deterministic,
    enable_grad,
    is_grad_enabled,
    no_grad,
    register_interpreter,
    set_grad_enabled,
    static_mode,
    wrapped,
)
from oprack.interpreter.op_expr import OpExpr
from oprack.interpreter.wrappers import autocast, check_finite, log_calls

__all__ = [
    "EagerInterpreter",
    "Interpreter",
    "LazyInterpreter",
    "OpExpr",
    "Wrapped",
    "autocast",
    "check_finite",
    "deterministic",
    "enable_grad",
    "is_grad_enabled",
    "log_calls",
    "no_grad",
    "register_interpreter",
    "seed",
    "set_grad_enabled",
    "static_mode",
    "wrapped",
]

# Names that were here before, and what they are now; for one release.
_MOVED = {
    "AutogradInterpreter": "oprack.autograd.AutogradInterpreter",
    "InputSpec": "oprack.InputSpec",
    "Module": "oprack.nn.Module",
    "ModuleList": "oprack.nn.ModuleList",
    "Parameter": "oprack.Parameter",
    "Sequential": "oprack.nn.Sequential",
    "Tensor": "oprack.Tensor",
    "TracedProgram": "oprack.capture.to_program.ExportedProgram",
    "Updates": "oprack.nn.Updates",
    "backward": "oprack.autograd.backward",
    "create_parameter": "oprack.nn.create_parameter",
    "grad": "oprack.grad",
    "gradcheck": "oprack.gradcheck",
    "jit": "oprack.jit",
    "recorded": "oprack.interpreter.log_calls",
    "to_program": "oprack.to_program",
    "to_tensor": "oprack.to_tensor",
}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module 'oprack.interpreter' has no attribute {name!r}")
    import importlib

    from oprack.deprecation import deprecated

    now = _MOVED[name]
    deprecated(f"oprack.interpreter.{name}", f"write {now}")
    home, _, attribute = now.rpartition(".")
    return getattr(importlib.import_module(home), attribute)
