"""Binds the records of a segment to local variables of generated code: each value's name, memory and last reader."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from oprack.runtime.plan.generated import Bound, BoundOp, Local
from oprack.runtime.plan.record import OpRecord, ShapeCheck
from oprack.tensor import LoDTensor, SparseValue
from oprack.types import EMPTY_VAR


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
        check = check or ShapeCheck(record)
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
