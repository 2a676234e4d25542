"""Results of a call by the op's own rules, for arguments of which no value is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from oprack.desc import ProgramDesc
from oprack.errors import UnimplementedError
from oprack.interpreter.op_expr import OpExpr
from oprack.op.desc_rules import DescInferShapeContext, infer_op
from oprack.types import EMPTY_VAR, VarType, dtype_enum


class Abstract(NamedTuple):
    """A tensor without its values.

    Attributes:
        shape: Its dims: integers, or what the framework has in their place and can compute with; -1 where only values
            say it.
        dtype: The name of its dtype.
        lod_level: How many LoD levels it has.
    """

    shape: tuple[Any, ...]
    dtype: str
    lod_level: int = 0


class _AnyDims(DescInferShapeContext):
    """Dims stay what the framework has for them, such as symbols, which int() would make numbers."""

    def set_dim(self, slot: str, dims: Sequence[Any], i: int = 0) -> None:
        var = self._out(slot, i)
        if var is not None:
            var.shape = tuple(dims)


def infer_abstract(expr: OpExpr, args: Sequence[Abstract | None]) -> list[Abstract | None]:
    """What a call gives, by the op's rules of types and shapes.

    Args:
        expr: The call.
        args: Its arguments, None for absent ones.

    Returns:
        One for each output, flat; None for those that are not computed.

    Raises:
        UnimplementedError: An output is no dense tensor, or the rules do not say its rank.
        OprackError: What the rules raise for arguments that do not fit.
    """
    op = expr.desc([a is not None for a in args])
    program = ProgramDesc()
    block = program.blocks[0]
    for name, arg in zip(op.input_arg_names(), args, strict=True):
        if arg is not None:
            var = block.create_var(name, type=VarType.LOD_TENSOR, dtype=dtype_enum(arg.dtype), lod_level=arg.lod_level)
            var.shape = tuple(arg.shape)
    made = op.output_arg_names()
    for name in made:
        if name != EMPTY_VAR and not block.has_var(name):
            block.create_var(name)
    infer_op(op, block, expr.info, lod_is_known=True, guesses=False, shapes=_AnyDims)
    found: list[Abstract | None] = []
    for name in made:
        if name == EMPTY_VAR:
            found.append(None)
            continue
        var = block.var(name)
        dtype = var.dtype_name()
        if var.type != VarType.LOD_TENSOR or var.shape is None or dtype is None:
            raise UnimplementedError(
                f"op {expr.type}: its rules do not make output {name} a dense tensor of known rank and dtype "
                f"({var.type.name}, shape {var.shape}, dtype {dtype}), which other frameworks ask for"
            )
        found.append(Abstract(tuple(var.shape), dtype, var.lod_level))
    return found
