"""Ops of PIR that take several ops of Fluid, by the tables `composed` in rules.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from oprack.desc import OpDesc
from oprack.errors import CorruptModelError, UnimplementedError

from oprack_pir.document import Operation
from oprack_pir.encoding import DTYPES, TensorType
from oprack_pir.table import rules
from oprack_pir.values import Frame, Variables


@dataclass(frozen=True, slots=True)
class Composition:
    """How one op is written.

    Attributes:
        operands: A name for each operand, in order.
        steps: Tables of `op`, `in`: slot -> name of an operand or step, `out`: name of the step, `attrs`, and `dtype`
            of the result where it is not that of the first operand. The last step gives the op's result.
    """

    operands: tuple[str, ...]
    steps: tuple[Mapping[str, Any], ...]


@cache
def composition(name: str) -> Composition | None:
    """The composition of an op by its name without dialect, in place or not; None when there is none."""
    found = rules().get("composed", {}).get(name.removesuffix("_"))
    return found and Composition(tuple(found["operands"]), tuple(found["steps"]))


def compose(op: Operation, known: Composition, variables: Variables, frame: Frame) -> None:
    """Append the steps of an op.

    Args:
        op: The operation.
        known: Its composition.
        variables: Of the program.
        frame: The block, and the values that it knows.

    Raises:
        CorruptModelError: Operands or results are not those of the op.
        UnimplementedError: The first operand would have to be broadcast: the steps give results of its shape.
    """
    where = f"op {op}"
    values = [variables.now(frame.find(number, where)) for number in op.operands]
    types = [v.type for v in values]
    if len(values) != len(known.operands) or len(op.results) != 1 or not all(isinstance(t, TensorType) for t in types):
        raise CorruptModelError(
            f"{where} has {len(values)} operands and {len(op.results)} results; expected the tensors "
            f"{', '.join(known.operands)}, and one result"
        )
    (number, type), first = op.results[0], types[0]
    if not isinstance(type, TensorType) or not isinstance(first, TensorType) or type.shape != first.shape:
        raise UnimplementedError(
            f"{where} reads {known.operands[0]} of {types[0]!r:.80} and gives {type!r:.80}; expected the same shape. "
            "Broadcast it before the op, and export the model again"
        )
    names = {name: str(value.names[0]) for name, value in zip(known.operands, values, strict=True)}
    if op.name.endswith("_"):
        result = variables.overwrite(values[0])
    else:
        result = variables.result(frame, number, type, op.name)
    variables.hold(len(known.steps))
    for step in known.steps:
        desc = OpDesc(step["op"], {slot: names[given] for slot, given in step["in"].items()})
        dtype = DTYPES[step["dtype"]] if "dtype" in step else first.dtype
        if step is known.steps[-1]:
            target = str(result.names[0])
        else:
            given = TensorType(type.kind, dtype, type.shape)
            target = variables.declare(frame, variables.fresh(f"{result.names[0]}.{step['out']}"), given)
        names[step["out"]] = target
        desc.outputs["Out"] = [target]
        for name, value in step.get("attrs", {}).items():
            desc.set_attr(name, value)
        frame.block.ops.append(desc)
    frame.define(number, result, where)
