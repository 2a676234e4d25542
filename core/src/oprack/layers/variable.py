"""Variable: a handle on a variable of a program, with Python's operators, which append ops."""

from __future__ import annotations

from typing import Any

from oprack.desc import BlockDesc
from oprack.errors import NotFoundError
from oprack.layers import unique_name
from oprack.layers.append import append_op
from oprack.layers.framework import VariableHandle
from oprack.layers.operators import Operators
from oprack.program import ParameterInfo, Program


class Variable(Operators, VariableHandle):
    """A variable of a block. Python's operators append ops: `x * 2 + y`, `x[0]`, `x < y`, `x @ w`.

    A Variable has no value while the program is built; run the program and fetch it. Equality is an op as well, so
    compare handles with `is`, or by name.

    Args:
        program: The program.
        block: The block that has the variable.
        desc: The variable's description.
    """

    __slots__ = ()

    def _apply(
        self, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], slots: tuple[str, ...] = ("Out",)
    ) -> Variable:
        block = self.program.current_block()
        name = unique_name.generate(op_type)
        outs = {
            slot: Variable(self.program, block, block.create_var(unique_name.generate(f"{name}.tmp"))) for slot in slots
        }
        append_op(op_type, inputs, outs, attrs, program=self.program)
        return outs[slots[0]]


class Parameter(Variable):
    """A variable that the startup program fills and training changes.

    Args:
        program: The program.
        block: The block that has the variable.
        desc: The variable's description.
    """

    __slots__ = ()

    @property
    def info(self) -> ParameterInfo:
        """What the program keeps of it beside the VarDesc; changing it changes the program."""
        return self.program.parameters.setdefault(self.name, ParameterInfo())

    @property
    def trainable(self) -> bool:
        """Whether optimizers change it."""
        return not self.desc.stop_gradient

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.desc.stop_gradient = not value

    @property
    def optimize_attr(self) -> dict[str, float]:
        """{"learning_rate": factor on the optimizer's}."""
        return {"learning_rate": self.info.learning_rate}

    @property
    def regularizer(self) -> Any:
        """What an optimizer adds to its gradient; None: what the optimizer says for all."""
        return self.info.regularizer

    @property
    def need_clip(self) -> bool:
        """Whether its gradient is clipped."""
        return self.info.need_clip

    @property
    def initializer(self) -> Any:
        """What fills it."""
        return self.info.initializer


def variable_of(program: Program, name: str, block: BlockDesc | None = None) -> Variable:
    """A handle on a variable of a block or of a parent of it.

    Args:
        program: The program.
        name: The variable's name.
        block: Where to begin; default: the program's current block.

    Returns:
        A Variable, or a Parameter where it is one.

    Raises:
        NotFoundError: There is none; the message lists names alike.
    """
    start = block or program.current_block()
    for owner in start.ancestors():
        desc = owner.find_var(name)
        if desc is not None:
            return (Parameter if desc.is_parameter else Variable)(program, owner, desc)
    start.var(name)  # raises, with names alike
    raise NotFoundError(f"variable {name!r} does not exist")
