"""Symbols: the Variables that a function of tensors is called with while it is written down as a program."""

from __future__ import annotations

from oprack.interpreter.methods import SharedMethods
from oprack.layers.variable import Variable


class Symbol(SharedMethods, Variable):
    """A Variable with the methods of tensors."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow through it."""
        return not self.stop_gradient

    @property
    def lod(self) -> list[list[int]]:
        """Offsets are known when the program runs."""
        return []


def symbol(variable: Variable) -> Symbol:
    """The same variable, with the methods of tensors."""
    return Symbol(variable.program, variable.block, variable.desc)
