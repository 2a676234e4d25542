"""Variable: a handle on a variable of a program that is being built; all it knows is in the VarDesc."""

from __future__ import annotations

from typing import Any

from oprack.desc import BlockDesc, VarDesc
from oprack.errors import NotFoundError
from oprack.layers.operators import Operators
from oprack.program import ParameterInfo, Program
from oprack.types import VarType


class Variable(Operators):
    """A variable of a block. Python's operators append ops: `x * 2 + y`, `x[0]`, `x < y`, `x @ w`.

    A Variable has no value while the program is built; run the program and fetch it. Equality is an op as well, so
    compare handles with `is`, or by name.
    """

    __slots__ = ("__weakref__", "block", "desc", "program")

    def __init__(self, program: Program, block: BlockDesc, desc: VarDesc) -> None:
        self.program, self.block, self.desc = program, block, desc

    def _apply(
        self, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], slots: tuple[str, ...] = ("Out",)
    ) -> Variable:
        from oprack.layers.helper import LayerHelper

        helper = LayerHelper(op_type, main_program=self.program)
        outs = {slot: helper.create_variable_for_type_inference() for slot in slots}
        helper.append_op(op_type, inputs, outs, attrs)
        return outs[slots[0]]

    @property
    def name(self) -> str:
        return self.desc.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Dims, -1 where each batch decides; () for a 0-D tensor, and when nothing is known."""
        return self.desc.shape or ()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> str | None:
        """Name of the dtype, for example "float32"; None where the kind of variable has none."""
        return self.desc.dtype_name()

    @property
    def lod_level(self) -> int:
        return self.desc.lod_level

    @property
    def type(self) -> VarType:
        """LOD_TENSOR, SELECTED_ROWS, LOD_TENSOR_ARRAY ..."""
        return self.desc.type

    @property
    def persistable(self) -> bool:
        """Whether it lives on after a run, in the scope, and is saved."""
        return self.desc.persistable

    @persistable.setter
    def persistable(self, value: bool) -> None:
        self.desc.persistable = bool(value)

    @property
    def stop_gradient(self) -> bool:
        """Whether no gradient flows through it."""
        return self.desc.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        self.desc.stop_gradient = bool(value)

    @property
    def is_parameter(self) -> bool:
        return self.desc.is_parameter

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.desc} in block {self.block.idx}>"


class Parameter(Variable):
    """A variable that the startup program fills and training changes."""

    __slots__ = ()

    @property
    def info(self) -> ParameterInfo:
        """What the program keeps of it beside the VarDesc; changing it changes the program."""
        return self.program.parameters.setdefault(self.name, ParameterInfo())

    @property
    def trainable(self) -> bool:
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
        return self.info.regularizer

    @property
    def need_clip(self) -> bool:
        return self.info.need_clip

    @property
    def initializer(self) -> Any:
        return self.info.initializer


def variable_of(program: Program, name: str, block: BlockDesc | None = None) -> Variable:
    """Handle on a variable of `block` (default: the program's current one) or a parent of it.

    Raises NotFoundError that lists names alike.
    """
    start = block or program.current_block()
    for owner in start.ancestors():
        desc = owner.find_var(name)
        if desc is not None:
            return (Parameter if desc.is_parameter else Variable)(program, owner, desc)
    start.var(name)  # raises, with names alike
    raise NotFoundError(f"variable {name!r} does not exist")


def parameters_of(program: Program) -> list[Parameter]:
    """Handles on the parameters of a program, in order of creation."""
    block = program.global_block()
    return [Parameter(program, block, desc) for desc in program.all_parameters()]
