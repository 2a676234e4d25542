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
            say it. None where not even the rank is known, as of scratch memory for the op's gradient.
        dtype: The name of its dtype; "" where it is not known.
        lod_level: How many LoD levels it has.
    """

    shape: tuple[Any, ...] | None
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
        UnimplementedError: An output is no dense tensor.
        OprackError: What the rules raise for arguments that do not fit.
    """
    op = expr.desc([a is not None for a in args])
    program = ProgramDesc()
    block = program.blocks[0]
    for name, arg in zip(op.input_arg_names(), args, strict=True):
        if arg is not None:
            var = block.create_var(name, type=VarType.LOD_TENSOR, dtype=dtype_enum(arg.dtype), lod_level=arg.lod_level)
            var.shape = None if arg.shape is None else tuple(arg.shape)
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
        if var.type != VarType.LOD_TENSOR:
            raise UnimplementedError(
                f"op {expr.type}: its output {name} is a {var.type.name} by its rules; other frameworks have dense "
                "tensors alone. Where an attribute is_sparse asks for it, leave that at False"
            )
        shape = None if var.shape is None else tuple(var.shape)
        found.append(Abstract(shape, var.dtype_name() or "", var.lod_level))
    return found


def require_known(expr: OpExpr, results: Sequence[Abstract | None]) -> None:
    """Refuse results that a framework can't trace, because it asks for ranks and dtypes before a call.

    Args:
        expr: The call.
        results: As `infer_abstract` gives them.

    Raises:
        UnimplementedError: The op's rules do not say a rank or a dtype.
    """
    if any(a is not None and (a.shape is None or not a.dtype) for a in results):
        flat = [n for slot, flags in expr.outputs for n in [slot] * len(flags)]
        open_ = [n for n, a in zip(flat, results, strict=True) if a is not None and (a.shape is None or not a.dtype)]
        raise UnimplementedError(
            f"op {expr.type}: its rules do not say the rank and dtype of {', '.join(open_)}, so that it can't be "
            "traced; call it eagerly, or let its infer_shape and infer_var_type say them"
        )
