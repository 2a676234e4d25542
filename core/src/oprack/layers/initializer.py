"""Initializer: the base of those that packs bring, each of which appends the op that fills one variable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from oprack.layers.append import append_op
from oprack.layers.variable import Variable
from oprack.packs.manager import default_manager
from oprack.types import dtype_enum


class Initializer(ABC):
    """Called with a variable of a startup program; appends the op that fills it."""

    @abstractmethod
    def __call__(self, var: Variable) -> None:
        """Append the op to block 0 of the variable's program."""

    def append(self, op_type: str, var: Variable, attrs: Mapping[str, Any]) -> None:
        """Append an op without inputs whose output Out is the variable, which also says its `shape` and `dtype`."""
        common = {"shape": list(var.shape), "dtype": int(dtype_enum(var.dtype))}
        program = var.program
        append_op(op_type, {}, {"Out": var}, {**common, **attrs}, program=program, block=program.global_block())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


def constant(value: float) -> Initializer:
    """`oprack.initializer.Constant(value)` of the pack that brings it. Raises UnknownLayerError."""
    return default_manager().layer("initializer", "Constant")(value)  # type: ignore[no-any-return]


def default_initializer(is_bias: bool) -> Initializer:
    """0 for biases, `oprack.initializer.Xavier()` for all else. Raises UnknownLayerError when no pack brings it."""
    found: Initializer = constant(0.0) if is_bias else default_manager().layer("initializer", "Xavier")()
    return found
