"""Ops in a row that their kernels prepare for new shapes before the first of them runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from oprack.python.implementation import without_collecting
from oprack.python.interruption import let_interruptions_pass
from oprack.runtime.kernel_call import is_promised
from oprack.runtime.plan.binding import BoundOp, Local, present

if TYPE_CHECKING:
    from oprack.kernel.specialization import BegunSteps
    from oprack.runtime.plan.record import Promised
    from oprack.runtime.plan.stretches import Joinable, Stretch
    from oprack.runtime.run_context import RunContext


@dataclass(frozen=True)
class _Op:
    """One op of a row. dead: ids of the local variables that nothing reads after it."""

    step: BoundOp
    prepare: Callable[..., Any]
    arguments: Sequence[Any]
    results: Sequence[Local | None]
    smallest: int
    dead: Sequence[int]

    def __call__(self, run: RunContext, arrays: dict[int, Any]) -> bool:
        """Prepare the op, and add arrays like its results; False where these are not known."""
        step, check = self.step, self.step.check
        given = [_values(argument, arrays) for argument in self.arguments]
        if self.smallest and given[0].size < self.smallest:
            return False
        promised: Promised = {}
        if check.needed:
            # native code trusts shapes, so the rule is asked before it is called
            asked = [None if x is None else arrays[id(x)] for xs in step.ins.values() for x in xs]
            promised = check.ask_ahead(run, *asked)
        made = self.prepare(*given)
        if made is None:
            return False
        arrays.update(
            (id(local), array)
            for local, array in zip(self.results, made if isinstance(made, tuple) else [made], strict=True)
            if local is not None
        )
        for slot, i in check.made:
            local, dims = step.outs[slot][i], promised.get((slot, i))
            if local is not None and dims is not None and not is_promised(arrays[id(local)].shape, dims):
                return False
        for local_id in self.dead:
            arrays.pop(local_id, None)
        return True


class Preparation:
    """Prepares a row of ops, called as `preparation(run, *arrays)` with the arrays of `entering`.

    Attributes:
        begin: Number of the first op.
        end: Number behind the last one.
        entering: The local variables that it takes.
    """

    def __init__(
        self, begin: int, steps: Sequence[BoundOp], candidates: Sequence[Joinable], stretch: Stretch | None
    ) -> None:
        self.begin, self.end = begin, begin + len(steps)
        whole = stretch is not None and stretch.end <= self.end and hasattr(stretch.function, "begin")
        self._stretch = stretch if whole else None
        made = {id(x) for c in candidates for x in c.results if x is not None}
        read = (x for s in steps for x in present(s.ins) if id(x) not in made)
        self.entering = list({id(x): x for x in read}.values())
        self._ops = [_op(i, step, c) for i, (step, c) in enumerate(zip(steps, candidates, strict=True), begin)]
        self._entering = [id(x) for x in self.entering]

    def __call__(self, run: RunContext, *arrays: Any) -> tuple[int, BegunSteps | None]:
        """Prepare the row.

        Returns:
            The number of the first op that could not be prepared, or behind the row; and the stretch that begins with
            the row, where it has begun and all of its ops are prepared.
        """
        known = dict(zip(self._entering, arrays, strict=True))
        stretch, begun, ready = self._stretch, None, 0
        try:
            if stretch is not None:
                begun = stretch.function.begin(*[known[id(x)] for x in stretch.entering])  # type: ignore[attr-defined]
            ready = without_collecting(self._prepare, run, known, begun)
        except Exception:
            let_interruptions_pass()  # what is wrong with an op is said when its turn comes
        finally:
            if begun is not None and stretch is not None and ready < stretch.end:
                begun.close()
                begun = None
        return ready, begun

    def _prepare(self, run: RunContext, known: dict[int, Any], begun: BegunSteps | None) -> int:
        for i, op in enumerate(self._ops, self.begin):
            if not op(run, known):
                return i
            if begun is not None:
                begun.advance()
        return self.end


def find_preparations(
    steps: Sequence[BoundOp], candidates: Sequence[Joinable | None], stretches: Mapping[int, Stretch]
) -> dict[int, Preparation]:
    """The rows of a segment, by the number of their first op."""
    found = {}
    for prepared, group in groupby(range(len(steps)), lambda i: _is_prepared(steps[i], candidates[i])):
        numbers = list(group)
        row = slice(numbers[0], numbers[-1] + 1)
        if prepared and sum(hasattr(c.function, "prepare") for c in candidates[row] if c is not None) > 1:
            chosen = [c for c in candidates[row] if c is not None]
            found[numbers[0]] = Preparation(numbers[0], steps[row], chosen, stretches.get(numbers[0]))
    return found


def _is_prepared(step: BoundOp, candidate: Joinable | None) -> bool:
    return (
        candidate is not None
        and (candidate.is_view or hasattr(candidate.function, "prepare"))
        and not any(x.lod for bound in (step.ins, step.outs) for x in present(bound))
    )


def _op(i: int, step: BoundOp, candidate: Joinable) -> _Op:
    spec = step.record.chosen.spec
    smallest = spec.min_numel if step.record.chosen.next is not None else 0
    arguments = list(candidate.arguments)
    while arguments and arguments[-1] is None:
        arguments.pop()
    dead = [id(x) for bound in (step.ins, step.outs) for x in present(bound) if max(x.used, x.shaped) <= i]
    # a function without `prepare` makes views: of an array that is not computed yet it gives the view to come
    prepare = getattr(candidate.function, "prepare", candidate.function)
    return _Op(step, prepare, arguments, candidate.results, smallest, dead)


def _values(argument: Any, arrays: dict[int, Any]) -> Any:
    if isinstance(argument, list):
        return [_values(x, arrays) for x in argument]
    return None if argument is None else arrays[id(argument)]
