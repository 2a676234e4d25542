"""The data of code generation for a segment: local variables, what enters and leaves, and the generated functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oprack.records import dataclass
from oprack.runtime.plan.record import OpRecord, ShapeCheck


@dataclass
class Local:
    """A local variable of the generated function, one for each time that a variable of the program is written.

    Attributes:
        name: What holds the bare array of a LoDTensor, or the object itself when `tensor` is False.
        lod: What holds its offsets; "" when it has none.
        tensor: Whether it is a LoDTensor.
        dtype: Its NumPy dtype; None for other objects.
        buffer: Number of its memory; views of one array have the same number.
        external: Whether the value enters the segment from outside.
        retained: Whether something else than the segment, such as the scope, holds the value for longer.
        used: Number of the last record that reads the value; -1 when none does.
        shaped: Number of the last record that needs no more than its shape; -1 when none does.
        flag: Parameter of the function that says whether the caller's memory may be overwritten; "" when no op asks.
    """

    name: str
    lod: str
    tensor: bool
    dtype: Any
    buffer: int
    external: bool = False
    retained: bool = False
    used: int = -1
    shaped: int = -1
    flag: str = ""


Bound = dict[str, list[Local | None]]
"""Local variables by slot, None for an absent one."""


def present(bound: Bound) -> Iterator[Local]:
    """The local variables of all slots."""
    return (local for locals_ in bound.values() for local in locals_ if local is not None)


@dataclass
class BoundOp:
    """An op bound to local variables.

    Attributes:
        record: What the recorded run decided.
        ins: Its inputs.
        outs: Its outputs.
        check: Its shape rule.
        kernel_sized: Outputs whose shapes only the kernel knows.
    """

    record: OpRecord
    ins: Bound
    outs: Bound
    check: ShapeCheck
    kernel_sized: list[Local]


@dataclass(frozen=True)
class Port:
    """A variable that enters or leaves a segment.

    Attributes:
        var: Name of the variable.
        tensor: Whether it is a LoDTensor, which the function takes and returns as a bare array.
        lod: Whether its offsets follow the array.
        flag: Whether it is followed by a bool that says whether its memory may be overwritten.
        shared: Whether another variable that enters or leaves may be on the same memory.
    """

    var: str
    tensor: bool
    lod: bool
    flag: bool = False
    shared: bool = False


@dataclass(frozen=True)
class Source:
    """Text of a function `segment(run, ...)`, and for each of its lines the number of the record that it belongs to."""

    text: str
    lines: Mapping[int, int]


@dataclass
class Generated:
    """The generated functions, the names that they use, and how to call them.

    Attributes:
        source: The function for shapes that were met before.
        asking: The function for shapes that are new, which asks the shape rule of every op.
        namespace: Objects that both use, by name.
        inputs: Parameters, in order.
        outputs: Results, in order.
        meets: Whether it meets shapes that only a kernel knows.
        slots: For each record, the local variables of its inputs.
        writes: For each variable that outlives a run that fails, who writes it: (number of the record, local variable),
            in order. A value stays in its local variable until the next one is there.
    """

    source: Source
    asking: Source
    namespace: dict[str, Any]
    inputs: list[Port]
    outputs: list[Port]
    meets: bool
    slots: list[Bound]
    writes: dict[str, list[tuple[int, Local]]]
