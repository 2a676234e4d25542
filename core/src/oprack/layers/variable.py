"""Variable: a handle on a variable of a program, with Python's operators, which append ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from oprack.desc import BlockDesc
from oprack.errors import InvalidArgumentError, NotFoundError
from oprack.layers import unique_name
from oprack.layers.append import append_op
from oprack.layers.framework import VariableHandle
from oprack.layers.operators import SIGNS, offer_operators
from oprack.packs.vocabulary import op_for
from oprack.program import ParameterInfo, Program
from oprack.types import dtype_enum, dtype_name

if TYPE_CHECKING:
    from oprack.layers.operators import Operators

    class _Offered(Operators["Variable"], VariableHandle): ...
else:
    _Offered = VariableHandle


class Variable(_Offered):
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

    def _operand(self, other: Any) -> Any:
        """What is no Variable and no number, as an operand beside this one; None where that can't be."""
        return None

    def astype(self, dtype: object) -> Variable:
        """The values as another dtype.

        Args:
            dtype: Its name, a VarType or a NumPy dtype.

        Returns:
            A Variable of the same shape.
        """
        attrs = {"in_dtype": int(dtype_enum(self.dtype)), "out_dtype": int(dtype_enum(dtype_name(dtype)))}
        return self._apply(op_for("convert"), {"X": self}, attrs)

    def detach(self) -> Variable:
        """The same values, through which no gradient flows."""
        found = self._apply(op_for("copy"), {"X": self}, {})
        found.stop_gradient = True
        return found

    def __len__(self) -> int:
        if not self.shape or self.shape[0] < 0:
            raise InvalidArgumentError(f"len({self.name}): dim 0 of shape {list(self.shape)} is not known before a run")
        return self.shape[0]

    def __iter__(self) -> Iterator[Variable]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> NoReturn:
        raise InvalidArgumentError(
            f"variable {self.name!r} has no value while the program is built, so `if`, `and`, `not` and "
            "`in` can't use it; use layers.cond or layers.while_loop, layers.logical_and, `is None`, or compare names"
        )


offer_operators(Variable, SIGNS, "operators")


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
