"""unfuse_all_reduce: one collective for each gradient, in place of one for a buffer in whose memory all of them lie.

Fleet's fused all-reduce makes a buffer by coalesce_tensor, whose parts are the variables of the gradients, counts on
later ops to write the gradients into this memory, and reduces the buffer. Here ops make arrays of their own, so what is
done to the buffer has to be done to each of its parts.
"""

from __future__ import annotations

from oprack.desc import BlockDesc, OpDesc, ProgramDesc
from oprack.errors import UnimplementedError

_ELEMENT_BY_ELEMENT = frozenset(
    {
        *(f"c_{kind}_{op}" for kind in ("allreduce", "reduce") for op in ("sum", "max", "min", "prod")),
        *("mp_allreduce_sum", "c_identity", "c_broadcast", "c_sync_calc_stream", "depend", "scale", "assign"),
    }
)
"""Ops X -> Out that do to each part what they do to the buffer."""
_LISTS = frozenset({"c_sync_comm_stream", "c_wait_comm", "c_wait_compute"})
"""Ops of lists X -> Out, in which parts may stand for the buffer."""


def unfuse_all_reduce(program: ProgramDesc) -> ProgramDesc:
    """Let ops on buffers of coalesce_tensor work on the parts.

    Args:
        program: The program; it is not changed.

    Returns:
        A program that needs no common memory; the same one if it needs none.

    Raises:
        UnimplementedError: An op does something else with a buffer.
    """
    found = program.clone()
    changed = False
    for block in found.blocks:
        for position, op in enumerate(block.ops):
            # Random numbers are drawn by the place that an op had.
            op.origin = position if op.origin is None else op.origin
        for op in [op for op in block.ops if op.type == "coalesce_tensor"]:
            if _relies_on_memory(found, block, op):
                changed = True
                _settle(found, op)
                if not _fills(op):
                    block.ops.remove(op)
    return found if changed else program


def _fills(op: OpDesc) -> bool:
    """Whether coalesce_tensor gives the parts values; else it makes memory alone."""
    return bool(op.attr("copy_data") or op.attr("set_constant"))


def _relies_on_memory(program: ProgramDesc, block: BlockDesc, op: OpDesc) -> bool:
    """Whether later ops write to the parts and use the buffer, or the other way round.

    What is written before does not count: the op copies it.
    """
    buffer, parts = op.output("FusedOutput"), set(op.output("Output"))
    others = [o for b in program.blocks for o in (b.ops[b.ops.index(op) + 1 :] if b is block else b.ops)]
    written = {name for o in others for name in o.output_arg_names()}
    used = written.union(*(o.input_arg_names() for o in others))
    return bool(used.intersection(buffer) and written & {*buffer, *parts})


def _settle(program: ProgramDesc, fusing: OpDesc) -> None:
    (buffer,), parts = fusing.output("FusedOutput"), fusing.output("Output")
    for block in program.blocks:
        ops: list[OpDesc] = []
        for op in block.ops:
            if op is fusing or buffer not in (*op.input_arg_names(), *op.output_arg_names()):
                ops.append(op)
            else:
                ops += _on_parts(op, buffer, parts)
        block.ops = ops


def _on_parts(op: OpDesc, buffer: str, parts: list[str]) -> list[OpDesc]:
    """The ops that do to the parts what an op does to the buffer."""
    if op.type == "depend" and op.input("X") != [buffer]:
        # The buffer is one that has to be there before.
        found = op.clone()
        found.inputs["Dep"] = _replaced(op.input("Dep"), buffer, parts)
        return [found]
    if op.type in _LISTS:
        found = op.clone()
        found.inputs["X"] = _replaced(op.input("X"), buffer, parts)
        found.outputs["Out"] = _replaced(op.output("Out"), buffer, parts)
        return [found]
    if op.type in _ELEMENT_BY_ELEMENT and op.input("X") == [buffer] == op.output("Out"):
        made = [op.clone() for _ in parts]
        for one, part in zip(made, parts, strict=True):
            one.rename_input(buffer, part)
            one.rename_output(buffer, part)
        return made
    raise UnimplementedError(
        f"op {op.type} uses {buffer!r}, the common memory that op coalesce_tensor gives {', '.join(parts[:3])} and "
        "others; here variables have no common memory, and only collectives that work element by element, X to Out of "
        "one name, are done part by part: write the program with DistributedStrategy.fuse_all_reduce_ops = False"
    )


def _replaced(names: list[str], buffer: str, parts: list[str]) -> list[str]:
    return [n for name in names for n in (parts if name == buffer else [name])]
