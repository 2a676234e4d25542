"""BlockPlan: a block as segments of generated code and, between them, the ops that run themselves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, cast

from oprack.runtime.liveness import read_after, segment_variables
from oprack.runtime.operator import OperatorBase
from oprack.runtime.plan.segment import Segment
from oprack.tensor import Scope
from oprack.types import PER_RUN_KINDS

if TYPE_CHECKING:
    from oprack.desc import BlockDesc
    from oprack.runtime.kernel_operator import OperatorWithKernel
    from oprack.runtime.run_context import RunContext


class BlockPlan:
    """The steps of a block: segments, and the ops that run themselves.

    Args:
        block: The block.
        operators: Its operators.
        keep: Variables that are read afterwards; None means everything that the block writes.
    """

    def __init__(self, block: BlockDesc, operators: Sequence[OperatorBase], keep: Collection[str] | None) -> None:
        groups = [list(ops) for _, ops in groupby(operators, key=_runs_kernel)]
        needed = None if keep is None else set(keep)
        steps: list[Segment | OperatorBase] = []
        # From the last group to the first: what a segment has to return is what later ones read.
        for group in reversed(groups):
            if _runs_kernel(group[0]):
                steps.append(Segment(cast("list[OperatorWithKernel]", group), segment_variables(group, block, needed)))
            else:
                steps += reversed(group)
            if needed is not None:
                needed |= read_after([op.desc for op in group], block.program)
        self.steps = steps[::-1]
        self._local, self._persistable = _variables_to_create(block, operators, steps)

    def run(self, run: RunContext, scope: Scope) -> None:
        """Run every step in `scope`."""
        for name in self._local:
            scope.var(name)
        # As in Paddle, persistable variables live in the root scope unless a scope in between has them.
        for name in self._persistable:
            if scope.find_var(name) is None:
                scope.root().var(name)
        for step in self.steps:
            step.run(run, scope) if isinstance(step, Segment) else step.run(scope, run)

    def forget_parameters(self) -> None:
        """Let go of the parameters of earlier runs."""
        for step in self.steps:
            if isinstance(step, Segment):
                step.forget_parameters()

    def source(self) -> str:
        """The generated code, for people to read."""
        parts = []
        for step in self.steps:
            if isinstance(step, Segment):
                parts += step.sources() or [f"# {len(step.operators)} ops, not compiled yet\n"]
            else:
                parts.append(f"# {step.type} runs itself: {step.desc}\n")
        return "\n".join(parts)


def _variables_to_create(
    block: BlockDesc, operators: Sequence[OperatorBase], steps: Sequence[Segment | OperatorBase]
) -> tuple[list[str], list[str]]:
    """(local variables, persistable variables) of the block that have to be there before the steps run.

    Ops that run themselves write to a variable of any scope above unless this one has it, and a variable that is read
    before it is written must not be mistaken for one of a scope above that has the same name.
    """
    written = {n for op in operators for names in op.outputs.values() for n in names}
    own = [block.vars[n] for n in written if n in block.vars]
    looked_up = {n for s in steps for n in (s.variables.reads if isinstance(s, Segment) else _names_of(s))}
    local = [v for v in block.vars.values() if v.name in looked_up]
    return (
        [v.name for v in local if not v.persistable or v.type in PER_RUN_KINDS],
        [v.name for v in own if v.persistable and v.type not in PER_RUN_KINDS],
    )


def _names_of(op: OperatorBase) -> set[str]:
    return {n for slots in (op.inputs, op.outputs) for names in slots.values() for n in names}


def _runs_kernel(op: OperatorBase) -> bool:
    """Whether generated code can call the op's kernel: the place has one, and no attribute is taken from a variable."""
    return not op.runs_itself and not op.tensor_attrs and cast("OperatorWithKernel", op).has_kernels
