"""What all operators of one run share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from oprack.deprecation import deprecated
from oprack.device import DeviceContext, DeviceContextPool
from oprack.kernel import ANY_KERNEL, KernelRules
from oprack.runtime.limits import NO_LIMITS, Limits
from oprack.runtime.random import RandomState
from oprack.tensor import Place, Scope

if TYPE_CHECKING:
    from oprack.runtime.liveness import Dying
    from oprack.runtime.operator import OperatorBase
    from oprack.runtime.prepared import PreparedBlock, PreparedProgram
    from oprack.runtime.profiler import Profiler
    from oprack.runtime.record import OpRecord


_FUNCTIONS = "write {}, of oprack.runtime.run_block"


@dataclass(frozen=True)
class Checks:
    """Checks of a run, all off by default.

    Attributes:
        nan_inf: Check that every floating output is finite.
        unused_input: Warn of inputs for which the kernel has no parameter.
        overwritten_input: Check that no kernel writes to an input that its op does not declare in place.
    """

    nan_inf: bool = False
    unused_input: bool = False
    overwritten_input: bool = False

    def __bool__(self) -> bool:
        return self.nan_inf or self.unused_input or self.overwritten_input


@dataclass
class RunContext:
    """Place, device, random state, checks and observers of one run."""

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
    """Receives what each op on the reference path decided, while a plan is recorded."""
    rounds: int = 0
    """How often blocks of loops and branches have run."""
    shapes_met: int | None = None
    """Number of the shapes of the segment's inputs; None when they are new, so that shape rules are asked."""
    shapes_after: list[tuple[dict[Any, int], Any]] = field(default_factory=list)
    """New shapes that only kernels knew, as (the table that numbers them, the number before and the shapes)."""
    shapes_settled: bool = True
    """Whether what the shape rules said follows from these shapes, so that they need not be asked again."""

    def meet(self, numbers: dict[Any, int], key: tuple[Any, ...]) -> None:
        """Note that a kernel returned shapes that are new after those which the generated code met before."""
        self.shapes_after.append((numbers, key))

    def run_block(self, index: int, scope: Scope, before: Callable[[Scope], None] | None = None) -> None:
        """The old name of oprack.runtime.run_block.run_block; goes in the next release."""
        from oprack.runtime.run_block import run_block

        deprecated("run.run_block(index, scope)", _FUNCTIONS.format("run_block(run, index, scope)"))
        run_block(self, index, scope, before)

    def run_steps(self, block: PreparedBlock, scope: Scope, keep: Sequence[str] | None) -> None:
        """The old name of oprack.runtime.run_block.run_steps; goes in the next release."""
        from oprack.runtime.run_block import run_steps

        deprecated("run.run_steps(block, scope, keep)", _FUNCTIONS.format("run_steps(run, block, scope, keep)"))
        run_steps(self, block, scope, keep)

    def run_operators(
        self, operators: Sequence[OperatorBase], scope: Scope, dying: Sequence[Dying] | None = None
    ) -> None:
        """The old name of oprack.runtime.run_block.run_operators; goes in the next release."""
        from oprack.runtime.run_block import run_operators

        deprecated("run.run_operators(operators, scope)", _FUNCTIONS.format("run_operators(run, operators, scope)"))
        run_operators(self, operators, scope, dying)
