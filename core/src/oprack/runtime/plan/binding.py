"""Names of generated code: for each value of a segment its memory, its last reader, and who may write over it.

Beside them, what code generation gives back: the functions, what enters them and what leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oprack.python.records import dataclass
from oprack.runtime.plan.record import OpRecord, ShapeCheck
from oprack.tensor import LoDTensor, SparseValue
from oprack.types import EMPTY_VAR

# Bytes up to which a result gets a new array even where an input's memory is free: asking whether it is free, and
# whether the shapes fit, costs more than a small array.
_SMALL = 1 << 16
# Shapes that each op of a plan remembers. The plan knows those of whole runs, within the budget of the process; these
# serve runs whose inputs are new while most ops meet shapes that are known.
_SHAPES = 128


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


# Binding --------------------------------------------------------------------------------------------------------------
class Binder:
    """Binds records in order.

    Args:
        records: All records of the segment.
        parameters: Variables whose values the scope retains after the run.
        outer: Variables of scopes above, which get what finished ops wrote even if a later one fails.

    Attributes:
        current: The local variable that holds the current value of each variable of the program.
        inputs: The inputs of the segment as (variable, local variable), in order of first use.
        buffers: The local variables on each memory, by the number of the memory.
        writes: As in Generated.
    """

    def __init__(self, records: Sequence[OpRecord], parameters: Collection[str], outer: Collection[str]) -> None:
        written = {n for r in records for names in r.op.outputs.values() for n in names}
        # The scope releases the old value of a parameter that the segment overwrites, as a training step does.
        self._retained = {n for n in parameters if n not in written}
        self.current: dict[str, Local] = {}
        self.inputs: list[tuple[str, Local]] = []
        self.buffers: list[list[Local]] = []
        self.writes: dict[str, list[tuple[int, Local]]] = {name: [] for name in outer}
        self._count = 0

    def bind(self, i: int, record: OpRecord, check: ShapeCheck | None = None) -> BoundOp:
        """Bind record number `i`, whose shape rule may have a check already; records must be bound in order."""
        ins = self._bind_inputs(i, record)
        check = check or ShapeCheck(record, _SHAPES)
        outs, kernel_sized = self._bind_outputs(i, record, self._viewed(record, ins), check)
        return BoundOp(record, ins, outs, check, kernel_sized)

    def _bind_inputs(self, i: int, record: OpRecord) -> Bound:
        op, ins = record.op, Bound()
        for slot, values in record.inputs.items():
            pairs = zip(op.inputs[slot], values, strict=True)
            ins[slot] = [None if v is None or n == EMPTY_VAR else self._read(n, v) for n, v in pairs]
        for slot, locals_ in ins.items():
            for local in (x for x in locals_ if x is not None):
                if local.tensor and slot in op.info.no_need_buffer_vars:
                    # The memory may be freed before this op, which then gets a ShapeOnly.
                    local.shaped = i
                else:
                    local.used = i
        return ins

    def _viewed(self, record: OpRecord, ins: Bound) -> Local | None:
        """The input of which outputs may be views."""
        viewed = None
        # Which kernel of the chain computes is known only at run time, so if any of them returns a view, the outputs
        # must be assumed to share the input's memory.
        for kernel in record.chosen.chain():
            if kernel.spec.view:
                viewed = next((x for x in ins.get(kernel.signature.inputs[0][0], ()) if x is not None), None)
        return viewed

    def _bind_outputs(
        self, i: int, record: OpRecord, viewed: Local | None, check: ShapeCheck
    ) -> tuple[Bound, list[Local]]:
        """The outputs, and those of them whose shapes only the kernel knows."""
        outs, kernel_sized = Bound(), list[Local]()
        for slot, values in record.outputs.items():
            outs[slot] = []
            for name, value in zip(record.op.outputs[slot], values, strict=False):
                if value is None or name == EMPTY_VAR:
                    outs[slot].append(None)
                    continue
                local = self._local(value, viewed.buffer if viewed else None)
                local.used = i
                self._written(i, name, local)
                # Only the kernel knows this shape, so generated code must look it up once the op has run.
                if isinstance(value, LoDTensor | SparseValue) and (slot, len(outs[slot])) not in check.known_outputs:
                    kernel_sized.append(local)
                outs[slot].append(local)
        return outs, kernel_sized

    def _written(self, i: int, name: str, local: Local) -> None:
        """Note that record number `i` writes a variable."""
        self.current[name] = local
        writes = self.writes.get(name)
        if writes is not None:
            if writes:
                writes[-1][1].used = i  # it is the variable's value until then
            writes.append((i, local))

    def _read(self, var: str, value: Any) -> Local:
        local = self.current.get(var)
        if local is None:
            local = self.current[var] = self._local(value)
            local.external, local.retained = True, var in self._retained
            self.inputs.append((var, local))
        return local

    def _local(self, value: Any, buffer: int | None = None) -> Local:
        k, self._count = self._count, self._count + 1
        if buffer is None:
            buffer = len(self.buffers)
            self.buffers.append([])
        tensor = isinstance(value, LoDTensor)
        lod, dtype = f"lod{k}" if tensor and value.lod else "", value.array.dtype if tensor else None
        local = Local(f"v{k}", lod, tensor, dtype, buffer)
        self.buffers[buffer].append(local)
        return local


# Memory that an op in place may take ----------------------------------------------------------------------------------
def reusable_buffer(i: int, step: BoundOp, buffers: Sequence[Sequence[Local]], xp: Any) -> str:
    """The text of an expression for the memory that op number `i` may write its first output to.

    Args:
        i: Number of the op.
        step: The op. The local variable of its input gets a flag when the caller has to say whether it is free.
        buffers: The local variables on each memory.
        xp: NumPy or CuPy.

    Returns:
        "None" when no input's memory is free, else an expression that is the input or None.
    """
    pair = _in_place(step)
    if pair is None:
        return "None"
    x_slot, x, out = pair
    op = step.record.op
    # A variable that an op overwrites under its own name, such as a parameter in an update, may take any shape that
    # fits.
    same_var = op.inputs[x_slot][0] == op.outputs[next(iter(step.outs))][0]
    # Memory from outside is the caller's unless the program itself overwrites the variable.
    if not _is_free(i, step, x, out, buffers) or (x.external and not same_var):
        return "None"
    if x.external:
        # who calls the function knows whether others see the array; the scope gives it up when it is overwritten
        x.flag = x.flag or f"own{x.name[1:]}"
    conditions = [x.flag] if x.flag else [f"{x.name}.nbytes > {_SMALL}"]
    if not same_var:
        conditions += _shape_conditions(step, x_slot, x)
    if not x.external:
        # a kernel may have returned a view, or an array that it may not give away
        conditions += [f"{x.name}.flags.owndata"]
        conditions += [f"{x.name}.flags.writeable"] if xp is np else []  # CuPy's arrays always are
    return f"{x.name} if {' and '.join(conditions)} else None"


def _in_place(step: BoundOp) -> tuple[str, Local, Local] | None:
    """(input slot, the input, the first output) where the op declares that one may be written to the other's memory."""
    out_slot = next(iter(step.outs), "")
    x_slot = next((x for x, out in step.record.op.info.inplace.items() if out == out_slot), "")
    outs, ins = step.outs.get(out_slot), step.ins.get(x_slot)
    if not outs or not ins or outs[0] is None or ins[0] is None or not ins[0].tensor:
        return None
    return x_slot, ins[0], outs[0]


def _is_free(i: int, step: BoundOp, x: Local, out: Local, buffers: Sequence[Sequence[Local]]) -> bool:
    """Whether this op reads the input last, once, and nobody needs another view of its memory."""
    # Views count as readers of the whole memory, whichever part they show.
    others = [local for local in buffers[x.buffer] if local is not x and local.used >= i]
    reads = sum(y is x for ys in step.ins.values() for y in ys)
    return x.dtype == out.dtype and x.used == i and not others and reads <= 1


def _shape_conditions(step: BoundOp, x_slot: str, x: Local) -> list[str]:
    """With a second tensor the result may be larger than the input, by broadcasting, where the input has a dim of 1."""
    seconds = [y for slot, ys in step.ins.items() if slot != x_slot for y in ys if y is not None and y.tensor]
    return [
        f"({y.name}.shape == {x.name}.shape or {y.name}.ndim <= {x.name}.ndim and 1 not in {x.name}.shape)"
        for y in seconds
    ]
