"""Interpreter: what runs, or writes down, one call of an op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from oprack.interpreter.op_expr import OpExpr


class Interpreter(Protocol):
    """Takes an OpExpr and its inputs, flat and in the expression's order, None for an absent one."""

    def apply(self, expr: OpExpr, args: Sequence[Any]) -> Any:
        """The outputs that the expression asks for, in its form.

        Args:
            expr: The op.
            args: Its tensors, None for absent ones.

        Returns:
            The outputs.
        """


class Wrapped:
    """Base of what is put around an interpreter's apply: derive from it and change `apply`.

    Args:
        inner: The interpreter.
    """

    def __init__(self, inner: Interpreter) -> None:
        self.inner = inner

    def apply(self, expr: OpExpr, args: Sequence[Any]) -> Any:
        """Pass a call on.

        Args:
            expr: The op.
            args: Its tensors, None for absent ones.

        Returns:
            What the inner interpreter gives.
        """
        return self.inner.apply(expr, args)
