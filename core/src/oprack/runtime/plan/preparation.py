"""Ops in a row that their kernels prepare for new shapes before the first of them runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from oprack.python.implementation import without_collecting
from oprack.python.interruption import let_interruptions_pass
from oprack.runtime.kernel_call import is_promised
from oprack.runtime.plan.binding import BoundOp, present

if TYPE_CHECKING:
    from oprack.kernel.specialization import BegunSteps
    from oprack.runtime.plan.record import Promised, ShapeCheck
    from oprack.runtime.plan.stretches import Joinable, Stretch
    from oprack.runtime.run_context import RunContext


Numbered: TypeAlias = "int | list[Numbered] | None"
"""The number of an array in a row, None for an absent one, or a list of these for a duplicable slot."""


@dataclass(frozen=True)
class _Op:
    """One op of a row, whose arrays have numbers.

    Attributes:
        check: Its shape rule.
        prepare: What its kernel prepares with.
        arguments: What `prepare` takes.
        asked: The inputs that the rule is asked about.
        results: Where arrays like the results go.
        promised: (slot, position) and number of the outputs that the rule may know.
        smallest: With fewer elements in its first argument, another kernel computes it.
        dead: The arrays that nothing reads after it.
    """

    check: ShapeCheck
    prepare: Callable[..., Any]
    arguments: Sequence[Numbered]
    asked: Sequence[int | None]
    results: Sequence[int | None]
    promised: Sequence[tuple[tuple[str, int], int]]
    smallest: int
    dead: Sequence[int]

    def __call__(self, run: RunContext, arrays: list[Any]) -> bool:
        """Prepare the op, and add arrays like its results; False where these are not known."""
        given = [_values(argument, arrays) for argument in self.arguments]
        if self.smallest and given[0].size < self.smallest:
            return False
        promised: Promised = {}
        if self.check.needed:
            # native code trusts shapes, so the rule is asked before it is called
            promised = self.check.ask_ahead(run, [None if k is None else arrays[k] for k in self.asked])
        made = self.prepare(*given)
        if made is None:
            return False
        for number, array in zip(self.results, made if isinstance(made, tuple) else [made], strict=True):
            if number is not None:
                arrays[number] = array
        for position, number in self.promised:
            dims = promised.get(position)
            if dims is not None and not is_promised(arrays[number].shape, dims):
                return False
        for number in self.dead:
            arrays[number] = None
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
        numbers: dict[int, int] = {}
        for x in (*self.entering, *(x for s in steps for x in present(s.outs))):
            numbers.setdefault(id(x), len(numbers))
        pairs = zip(steps, candidates, strict=True)
        self._ops = [_op(i, step, candidate, numbers) for i, (step, candidate) in enumerate(pairs, begin)]
        self._count = len(numbers)
        self._of_stretch = [numbers[id(x)] for x in stretch.entering] if stretch is not None and whole else []

    def __call__(self, run: RunContext, *arrays: Any) -> tuple[int, BegunSteps | None]:
        """Prepare the row.

        Returns:
            The number of the first op that could not be prepared, or behind the row; and the stretch that begins with
            the row, where it has begun and all of its ops are prepared.
        """
        known = [*arrays, *[None] * (self._count - len(arrays))]
        stretch, begun, ready = self._stretch, None, 0
        try:
            if stretch is not None:
                begun = stretch.function.begin(*[known[k] for k in self._of_stretch])  # type: ignore[attr-defined]
            ready = without_collecting(self._prepare, run, known, begun)
        except Exception:
            let_interruptions_pass()  # what is wrong with an op is said when its turn comes
        finally:
            if begun is not None and stretch is not None and ready < stretch.end:
                begun.close()
                begun = None
        return ready, begun

    def _prepare(self, run: RunContext, known: list[Any], begun: BegunSteps | None) -> int:
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


def _op(i: int, step: BoundOp, candidate: Joinable, numbers: Mapping[int, int]) -> _Op:
    def number(x: Any) -> Any:
        return [number(y) for y in x] if isinstance(x, list) else None if x is None else numbers[id(x)]

    check, spec = step.check, step.record.chosen.spec
    arguments = list(candidate.arguments)
    while arguments and arguments[-1] is None:
        arguments.pop()
    outputs = [(position, step.outs[position[0]][position[1]]) for position in check.made]
    return _Op(
        check,
        # a function without `prepare` makes views: of an array that is not computed yet it gives the view to come
        prepare=getattr(candidate.function, "prepare", candidate.function),
        arguments=number(arguments),
        asked=[number(x) for xs in step.ins.values() for x in xs],
        results=number(list(candidate.results)),
        promised=[(position, numbers[id(x)]) for position, x in outputs if x is not None],
        smallest=spec.min_numel if step.record.chosen.next is not None else 0,
        dead=[numbers[id(x)] for bound in (step.ins, step.outs) for x in present(bound) if max(x.used, x.shaped) <= i],
    )


def _values(argument: Numbered, arrays: list[Any]) -> Any:
    if isinstance(argument, list):
        return [_values(x, arrays) for x in argument]
    return None if argument is None else arrays[argument]
