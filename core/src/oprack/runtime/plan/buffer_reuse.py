"""Which memory an op in place may write its first output to, and under which conditions at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oprack.runtime.plan.generated import BoundOp, Local

# Bytes up to which a result gets a new array even where an input's memory is free: asking whether it is free, and
# whether the shapes fit, costs more than a small array.
_SMALL = 1 << 16


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
