"""Runs of a prepared block whose inputs are of a form that it has met: straight to the function of its plan.

Most programs are feed ops, one segment and fetch ops. What a run of such a program looks up, variables, signatures,
shapes and parameters, is the same each time while the inputs keep their dtypes and shapes; for a small net that takes
longer than its kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.runtime.feed_fetch import FeedOp, FetchOp
from oprack.runtime.plan.segment import Segment
from oprack.tensor import LoDTensor, Scope

if TYPE_CHECKING:
    from oprack.runtime.executor import NaiveExecutor
    from oprack.runtime.plan.block_plan import BlockPlan
    from oprack.runtime.plan.generated import Port
    from oprack.runtime.plan.segment import CompiledSegment
    from oprack.runtime.prepared import PreparedProgram
    from oprack.runtime.run_context import RunContext


class SteadyRun:
    """Runs a block for inputs of one form, in one thread at a time.

    Args:
        segment: The only segment of the block.
        compiled: What was compiled of it for inputs of the form.
        shapes: Shapes of what it reads.
        run: The state of its runs.
        arguments: The arguments of the generated code in an earlier run; those of parameters stay.
        places: For each input its position among the arguments and that of its offsets; None where it is not read.
        taken: For each output its position among the results and that of its offsets.

    Attributes:
        width: How many arguments the generated code takes.
    """

    def __init__(
        self,
        segment: Segment,
        compiled: CompiledSegment,
        shapes: Any,
        run: RunContext,
        arguments: Sequence[Any],
        places: Sequence[tuple[int, int | None] | None],
        taken: Sequence[tuple[int, int | None]],
    ) -> None:
        self._segment, self._compiled, self._shapes, self._run = segment, compiled, shapes, run
        self._arguments, self._places, self._taken = list(arguments), places, taken
        for place in places:
            if place is not None:
                self._arguments[place[0]] = None  # the caller's memory
        self._number = compiled.shapes[shapes]
        self.width = len(self._arguments)

    def __call__(self, values: Sequence[tuple[Any, list[list[int]]]]) -> list[tuple[Any, list[list[int]]]]:
        """Run: (array, offsets) of each output. values: those of each input, in the order of the feeds."""
        arguments, run = self._arguments.copy(), self._run
        for (array, lod), place in zip(values, self._places, strict=True):
            if place is not None:
                at, lod_at = place
                arguments[at] = array
                if lod_at is not None:
                    arguments[lod_at] = lod
        run.shapes_met = self._number
        with np.errstate(all="ignore"), run.device.activate():
            results = self._segment.call(self._compiled, self._shapes, arguments, run)
        return [(results[at], [] if lod_at is None else results[lod_at]) for at, lod_at in self._taken]


def steady_run(
    executor: NaiveExecutor, program: PreparedProgram, outer: Scope, feeds: Mapping[str, Any], keep: Sequence[str]
) -> SteadyRun | None:
    """What runs like the last one come to, with other numbers in inputs of the same form.

    Args:
        executor: What ran the program.
        program: The prepared program.
        outer: The scope of the persistable variables, which nobody but the program writes to.
        feeds: What was fed.
        keep: The variables that are read after a run.

    Returns:
        The run; None where another one may do something else than the last one, or where that is not known yet.
    """
    run = executor.context(program)
    segment = _only_segment(program.main.plan(keep)) if run.planned and run.place.kind == "cpu" else None
    if segment is None or not all(type(value) is LoDTensor for value in feeds.values()):
        return None
    variables = segment.variables
    # What stays after a run, and what a run finds in the scope, has to be the same in each.
    persistable = {name for name in feeds if name in program.main.persistable}
    if variables.outer or persistable or not feeds.keys() >= set(variables.reads):
        return None
    parameters, temporaries = outer.find_values(variables.parameters), [feeds[name] for name in variables.reads]
    met = segment.met(run, parameters, temporaries)
    if met is None:
        return None
    compiled, shapes = met
    taken = _positions(compiled.generated.outputs)
    if not taken.keys() >= set(keep):
        return None
    places, arguments = compiled.arguments.places(), compiled.arguments([*parameters, *temporaries])
    where = [places.get(name) for name in feeds]
    return SteadyRun(segment, compiled, shapes, run, arguments, where, [taken[name] for name in keep])


def _only_segment(plan: BlockPlan) -> Segment | None:
    """The segment of a plan that is feed ops, a segment and fetch ops; None of any other plan."""
    kinds = [kind for kind, _ in groupby(plan.steps, key=type)]
    segments = [step for step in plan.steps if isinstance(step, Segment)]
    between = [kind for kind in kinds if kind not in (FeedOp, FetchOp)]
    in_order = kinds == [k for k in (FeedOp, Segment, FetchOp) if k in kinds]
    return segments[0] if between == [Segment] and len(segments) == 1 and in_order else None


def _positions(ports: Sequence[Port]) -> dict[str, tuple[int, int | None]]:
    """For each tensor that leaves a segment, its position among the results and that of its offsets."""
    found, position = dict[str, tuple[int, int | None]](), 0
    for port in ports:
        if port.tensor:
            found[port.var] = position, position + 1 if port.lod else None
        position += 1 + (port.tensor and port.lod)
    return found
