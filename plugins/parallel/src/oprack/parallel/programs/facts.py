"""Questions about ops, variables and layouts that the rewriting of programs asks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from oprack.desc import BlockDesc, OpDesc, VarDesc
from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.op.info import OpInfo
from oprack.op.sbp import Signature
from oprack.parallel.layouts.layout import Layout
from oprack.parallel.programs.gradients import is_backward
from oprack.types import EMPTY_VAR, VarType

Argument = tuple[str, int, str]
"""(slot, position in the slot, name of the variable)"""


def arguments(slots: Mapping[str, Sequence[str]]) -> list[Argument]:
    return [(slot, i, name) for slot, names in slots.items() for i, name in enumerate(names) if name != EMPTY_VAR]


def declared_attrs(op: OpDesc, info: OpInfo) -> dict[str, Any]:
    """The attributes of an op that its OpProto declares, without the framework's notes."""
    return {k: v for k, v in op.attrs.items() if k in info.proto.attrs}


def is_plain(var: VarDesc | None) -> bool:
    """Whether a variable is a tensor, or some rows of one, of known shape without LoD."""
    if var is None or var.shape is None:
        return False
    return (
        var.type in (VarType.LOD_TENSOR, VarType.SELECTED_ROWS) and not var.lod_level and all(d >= 0 for d in var.shape)
    )


def is_integer(var: VarDesc | None) -> bool:
    """Whether a variable holds integers or truth values."""
    names = ("BOOL", "INT8", "UINT8", "INT16", "INT32", "INT64")
    return var is not None and var.dtype is not None and var.dtype.name in names


def itemsize(var: VarDesc | None) -> int:
    return 8 if var is not None and var.dtype is not None and "64" in var.dtype.name else 4


def gives_equal_parts(signature: Signature, slot: str, shape: Sequence[int] | None, ranks: int) -> bool:
    """Whether a signature gives all ranks parts of one size, so that ops which move parts need not know the sizes."""
    for s in (signature.inputs.get(slot), signature.outputs.get(slot)):
        if s is not None and s.kind == "S" and (shape is None or s.dim >= len(shape) or shape[s.dim] % ranks):
            return False
    return True


def splits_evenly(layout: Layout | None, shape: Sequence[int] | None) -> bool:
    """Whether the size of each dim that a layout splits is a multiple of the number of its parts."""
    if layout is None or layout.is_broadcast or shape is None:
        return True
    return all(shape[dim] % _parts(layout, dim) == 0 for dim in {s.dim for s in layout.sbps if s.kind == "S"})


def _parts(layout: Layout, dim: int) -> int:
    """Into how many parts a layout splits a dim."""
    return math.prod(n for s, n in zip(layout.sbps, layout.placement.shape, strict=True) if s.dim == dim)


def require_even(name: str, layout: Layout, shape: Sequence[int]) -> None:
    """Raise InvalidArgumentError where a layout gives ranks parts of different sizes."""
    layout.require_dims(shape)
    for s in layout.sbps:
        if s.kind == "S" and shape[s.dim] >= 0 and shape[s.dim] % _parts(layout, s.dim):
            raise InvalidArgumentError(
                f"distribute: {name!r} of shape {list(shape)} in {layout!r}; expected a dim {s.dim} that "
                f"{_parts(layout, s.dim)} ranks can share in equal parts"
            )


def require_whole_attrs(op: OpDesc, layouts: Mapping[str, Layout]) -> None:
    """Raise UnimplementedError where an attribute comes from a variable that is not whole on each rank."""
    for name, layout in layouts.items():
        if not layout.is_broadcast:
            raise UnimplementedError(
                f"distribute: op {op.type} takes an attribute from variable {name!r}, which lies in {layout!r}; "
                "expected one that is whole on each rank"
            )


def results(block: BlockDesc) -> set[str]:
    """Variables that forward ops write and no op but gradient ops and fetches reads."""
    read = {n for op in block.ops if not is_backward(op) and op.type != "fetch" for n in op.input_arg_names()}
    return {n for op in block.ops if not is_backward(op) for n in op.output_arg_names()} - read
