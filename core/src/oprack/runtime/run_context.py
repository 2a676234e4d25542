"""What all operators of one run share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oprack.device import DeviceContext, DeviceContextPool
from oprack.kernel import ANY_KERNEL, KernelRules
from oprack.runtime.limits import NO_LIMITS, Limits
from oprack.runtime.random import RandomState
from oprack.tensor import LoDTensor, Place, Scope, ShapeOnly, Variable

if TYPE_CHECKING:
    from oprack.runtime.liveness import Dying
    from oprack.runtime.operator import OperatorBase
    from oprack.runtime.prepared import PreparedBlock, PreparedProgram
    from oprack.runtime.profiler import Profiler
    from oprack.runtime.record import OpRecord


@dataclass(frozen=True)
class Checks:
    """Checks of a run, all off by default.

    nan_inf: every floating output is finite. unused_input: warn of inputs that a kernel takes no part of.
    overwritten_input: no kernel writes to an input that its op does not declare in place.
    """

    nan_inf: bool = False
    unused_input: bool = False
    overwritten_input: bool = False

    def __bool__(self) -> bool:
        return self.nan_inf or self.unused_input or self.overwritten_input


@dataclass
class RunContext:
    """Place, device, random state, checks and observers of one run; runs sub-blocks for control flow."""

    place: Place
    device: DeviceContext
    pool: DeviceContextPool
    program: PreparedProgram
    random: RandomState = field(default_factory=RandomState)
    checks: Checks = Checks()
    profiler: Profiler | None = None
    observers: Sequence[Any] = ()
    rules: KernelRules = ANY_KERNEL
    limits: Limits = NO_LIMITS
    planned: bool = False
    """Blocks run through their plans; otherwise op by op on the reference path."""
    recorder: list[OpRecord] | None = None
    """Takes what each op on the reference path decided, while a plan is traced."""
    rounds: int = 0
    """How often blocks of loops and branches have run."""
    shapes_met: int | None = None
    """Number of the shapes that the generated code got as inputs; None when it has not met them, so that it asks the
    ops' shape rules."""
    shapes_after: list[tuple[dict[Any, int], Any]] = field(default_factory=list)
    """Shapes that only kernels knew and that are new as well: where to number them, by what went before."""
    shapes_settled: bool = True
    """What the shape rules said follows from these shapes; otherwise they are asked again when the shapes come back."""

    def meet(self, numbers: dict[Any, int], key: tuple[Any, ...]) -> None:
        """Generated code came across shapes, made by a kernel, that are new after what it met before."""
        self.shapes_after.append((numbers, key))

    def run_block(self, index: int, scope: Scope, before: Callable[[Scope], None] | None = None) -> None:
        """Run block `index` in `scope`, after creating its own variables there."""
        block = self.program.block(index)
        block.create_variables(scope)
        if before is not None:
            before(scope)
        self.run_steps(block, scope, None)

    def run_steps(self, block: PreparedBlock, scope: Scope, keep: Sequence[str] | None) -> None:
        """Run a block in `scope`, which has its variables. keep: local ones that are read afterwards; None = all.

        Raises LoopLimitError when it is not the block that the run starts with, and such blocks have run too often.
        """
        if block.block.idx != self.program.block_id:
            self.rounds += 1
            self.limits.check_rounds(self.rounds, block.block.idx)
        if self.planned:
            block.plan(keep).run(self, scope)
        else:
            self.run_operators(block.operators, scope, None if keep is None else block.dying(keep))

    def run_operators(
        self, operators: Sequence[OperatorBase], scope: Scope, dying: Sequence[Dying] | None = None
    ) -> None:
        """Run operators in order; observers see each one before and after.

        dying: per operator, what is dropped after it (liveness.last_uses).
        """
        for i, op in enumerate(operators):
            for o in self.observers:
                o.before_op(op, scope)
            op.run(scope, self)
            for o in self.observers:
                o.after_op(op, scope)
            if dying is not None:
                for name in dying[i].values:
                    var = scope.find_local_var(name)
                    if var is not None:
                        var.value = None
                for name in dying[i].buffers:
                    _free_buffer(scope.find_local_var(name))


def _free_buffer(var: Variable | None) -> None:
    """Let go of a tensor's memory, and keep its shape."""
    value = var.value if var is not None else None
    if var is not None and isinstance(value, LoDTensor):
        array = ShapeOnly(value.array)
        var.value = LoDTensor(array, value.lod, place=value.place, layout=value.layout, check=False)
