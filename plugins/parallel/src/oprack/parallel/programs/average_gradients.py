"""average_gradients: a program of one rank as each rank runs it on data of its own, gradients being means."""

from __future__ import annotations

from oprack.autodiff.appender import OpRole
from oprack.desc import BlockDesc, OpDesc
from oprack.errors import InvalidArgumentError
from oprack.op.desc_rules import grad_name
from oprack.parallel.layouts.layout import Placement
from oprack.parallel.programs.boxing_ops import ProgramBoxing
from oprack.parallel.programs.distribute import Distributed, give_all_ranks, is_kept
from oprack.parallel.rings import ring_number
from oprack.program import Program


def average_gradients(main: Program, startup: Program, placement: Placement) -> Distributed:
    """Let each rank run a program on data of its own, with gradients that are means over the ranks.

    As `DataParallel` does for modules. No op is split, so loops, branches, sequences with LoD and sparse gradients are
    as on one rank; each rank fetches its own loss, and statistics of a batch are those of the rank's rows. Where the
    loss is a mean and each rank has as many rows, parameters are those of one rank with all rows.

    Args:
        main: The program with its optimizer; it is not changed.
        startup: The program that fills its parameters; it is not changed. The values of the first rank count.
        placement: The grid of ranks.

    Returns:
        The programs of this rank.

    Raises:
        InvalidArgumentError: The program has no gradient of a parameter.
        NotFoundError: No pack brings ops between ranks.
    """
    found, begin = main.clone(), startup.clone()
    block = found.desc.blocks[0]
    last = _last_writers(block)
    if not last:
        raise InvalidArgumentError(
            "average_gradients: no op of the backward pass writes the gradient of a parameter; call minimize before"
        )
    ops: list[OpDesc] = []
    boxing = ProgramBoxing(block, ops.append)
    boxing.role = int(OpRole.BACKWARD)
    ring = ring_number(placement.world)
    for position, op in enumerate(block.ops):
        op.origin = position if op.origin is None else op.origin
        ops.append(op)
        for gradient in last.get(position, ()):
            boxing.average(gradient, ring, placement.world.size)
    block.ops = ops
    kept = [v for v in block.vars.values() if is_kept(v)]
    everywhere = placement.layout(["B"] * len(placement.shape))
    layouts = {v.name: everywhere for v in kept}
    give_all_ranks(begin.desc.blocks[0], placement, layouts)
    return Distributed(found, begin, layouts, {v.name: tuple(v.shape or ()) for v in kept})


def _last_writers(block: BlockDesc) -> dict[int, list[str]]:
    """Position of an op of the backward pass -> gradients of parameters that it is the last to write.

    Later ops, such as clipping, may write the same variables; they are to see the means.
    """
    gradients = {grad_name(v.name) for v in block.vars.values() if v.is_parameter}
    last: dict[str, int] = {}
    for position, op in enumerate(block.ops):
        if op.attr("op_role", 0) & 0xFF == OpRole.BACKWARD:
            last |= {name: position for name in op.output_arg_names() if name in gradients}
    found: dict[int, list[str]] = {}
    for name, position in last.items():
        found.setdefault(position, []).append(name)
    return found
