"""RunContext: the state that all operators of one run share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from oprack.device import DeviceContext, DeviceContextPool
from oprack.kernel import ANY_KERNEL, KernelRules
from oprack.records import dataclass
from oprack.runtime.limits import NO_LIMITS, Limits
from oprack.runtime.random import RandomState
from oprack.tensor import Place

if TYPE_CHECKING:
    from oprack.runtime.prepared import PreparedProgram
    from oprack.runtime.profiler import Profiler
    from oprack.runtime.record import OpRecord


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
    """Place, device, random state, checks and observers of one run.

    Attributes:
        place: Where kernels run.
        device: The context of that place.
        pool: The contexts of all places.
        program: What is run.
        random: The state of the random numbers.
        checks: Checks of every op.
        profiler: Measures ops; None: nobody does.
        observers: Told of every op.
        rules: Which kernels may run.
        limits: Bounds of memory and of rounds of loops.
        planned: Whether blocks run through their plans; otherwise they run op by op on the reference path.
        recorder: Receives the decisions of each op on the reference path while a plan is recorded.
        rounds: How often blocks of loops and branches have run so far.
        shapes_met: Number of this combination of input shapes of the segment; None when it is new, so that shape rules
            must run.
        shapes_after: New output shapes that only kernels know, as (table that numbers them, (preceding number,
            shapes)).
        shapes_settled: Whether the results of the shape rules depend on these shapes alone, so that they need not run
            again.
        made: What generated code returns, until it is in the scope; of a segment that writes to variables of scopes
            above.
    """

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
    recorder: list[OpRecord] | None = None
    rounds: int = 0
    shapes_met: int | None = None
    shapes_after: list[tuple[dict[Any, int], Any]] = field(default_factory=list)
    shapes_settled: bool = True
    made: list[Any] | None = None

    def meet(self, numbers: dict[Any, int], key: tuple[Any, ...]) -> None:
        """Note output shapes that a kernel has not returned before for what this segment has read so far."""
        self.shapes_after.append((numbers, key))
