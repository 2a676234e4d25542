"""Runs blocks of a program: through their plans, or op by op on the reference path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from oprack.tensor import LoDTensor, Scope, ShapeOnly, Variable

if TYPE_CHECKING:
    from oprack.runtime.liveness import Dying
    from oprack.runtime.operator import OperatorBase
    from oprack.runtime.prepared import PreparedBlock
    from oprack.runtime.run_context import RunContext


def run_block(run: RunContext, index: int, scope: Scope, before: Callable[[Scope], None] | None = None) -> None:
    """Run a block of the program, after creating its own variables.

    Args:
        run: the run.
        index: of the block.
        scope: where it runs.
        before: called with the scope when it has the variables.

    Raises:
        LoopLimitError: blocks of loops and branches have run too often.
    """
    block = run.program.block(index)
    block.create_variables(scope)
    if before is not None:
        before(scope)
    run_steps(run, block, scope, None)


def run_steps(run: RunContext, block: PreparedBlock, scope: Scope, keep: Sequence[str] | None) -> None:
    """Run a block in a scope that has its variables.

    Args:
        run: the run.
        block: the block.
        scope: where it runs.
        keep: local variables that are read afterwards; None = all.

    Raises:
        LoopLimitError: it is not the block that the run starts with, and such blocks have run too often.
    """
    if block.block.idx != run.program.block_id:
        # The main block is no round of a loop.
        run.rounds += 1
        run.limits.check_rounds(run.rounds, block.block.idx)
    if run.planned:
        block.plan(keep).run(run, scope)
    else:
        run_operators(run, block.operators, scope, None if keep is None else block.dying(keep))


def run_operators(
    run: RunContext, operators: Sequence[OperatorBase], scope: Scope, dying: Sequence[Dying] | None = None
) -> None:
    """Run operators in order; observers see each one before and after.

    Args:
        run: the run.
        operators: those to run.
        scope: where they run.
        dying: per operator, what is dropped after it (liveness.last_uses).
    """
    for i, op in enumerate(operators):
        for o in run.observers:
            o.before_op(op, scope)
        op.run(scope, run)
        for o in run.observers:
            o.after_op(op, scope)
        if dying is not None:
            for name in dying[i].values:
                var = scope.find_local_var(name)
                if var is not None:
                    var.value = None
            for name in dying[i].buffers:
                _free_buffer(scope.find_local_var(name))


def _free_buffer(var: Variable | None) -> None:
    """Free a tensor's memory, but not its shape."""
    value = var.value if var is not None else None
    if var is not None and isinstance(value, LoDTensor):
        # Later ops read the shape, as those whose no_need_buffer_vars say so.
        array = ShapeOnly(value.array)
        var.value = LoDTensor(array, value.lod, place=value.place, check=False)
