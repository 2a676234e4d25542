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
    static_mode,
    wrapped,
)
from oprack.interpreter.op_expr import OpExpr
from oprack.interpreter.wrappers import autocast, check_finite, recorded

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
    "no_grad",
    "recorded",
    "register_interpreter",
    "seed",
    "static_mode",
    "wrapped",
]

# Names that were here before the room was divided, and where they are now; for one release.
_MOVED = {
    "AutogradInterpreter": "oprack.autograd",
    "InputSpec": "oprack",
    "Module": "oprack.nn",
    "ModuleList": "oprack.nn",
    "Parameter": "oprack",
    "Sequential": "oprack.nn",
    "Tensor": "oprack",
    "TracedProgram": "oprack.capture",
    "Updates": "oprack.nn",
    "backward": "oprack.autograd",
    "create_parameter": "oprack.nn",
    "grad": "oprack",
    "gradcheck": "oprack",
    "jit": "oprack",
    "to_program": "oprack",
    "to_tensor": "oprack",
}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module 'oprack.interpreter' has no attribute {name!r}")
    import importlib
    import warnings

    home = _MOVED[name]
    warnings.warn(
        f"oprack.interpreter.{name} is deprecated and goes with the next release; write {home}.{name}",
        DeprecationWarning,
        stacklevel=2,
    )
    return getattr(importlib.import_module(home), name)
