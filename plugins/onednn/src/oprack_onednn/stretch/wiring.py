"""Wiring: which op of a stretch takes which arrays, and which of them enter, leave or stay fixed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from oprack.kernel.specialization import Argument, StretchStep
from oprack.python.records import dataclass

from oprack_onednn.dnnl.operands import FLOAT
from oprack_onednn.stretch.joinable import Joinable
from oprack_onednn.stretch.views import flat


class Wiring:
    """Which op of a stretch takes which arrays, by their numbers.

    Attributes:
        inputs: For each step a flat list of the arrays that it takes; None for an absent one.
        first: For each step the number of its first result.
        last: For each array the last step that reads it, behind all steps where it leaves, or -1.
        varying: Arrays that enter and may be others in each run, each with its dtype.
        parameters: Arrays that enter and stay; their addresses are set once.
        joinables: The Joinable of each step's function; None for a view.
    """

    def __init__(self, steps: Sequence[StretchStep], entering: int, leaving: Sequence[int]) -> None:
        self.steps, self.entering, self.leaving = steps, entering, leaving
        self.joinables: list[Joinable | None] = [None if step.is_view else _joinable(step) for step in steps]
        self._arguments = [step.arguments if step.is_view else _without_absent(step.arguments) for step in steps]
        self.inputs = [_flat(given) if p is None else list(p.arrange(*given)) for given, p in self._pairs()]
        self.first, count = list[int](), entering
        for step in steps:
            self.first.append(count)
            count += step.results
        self.count = count
        self.last = [-1] * count
        for i, numbers in enumerate([*(_flat(step.arguments) for step in steps), leaving]):
            for number in numbers:
                if number is not None:
                    self.last[number] = i
        taken = [
            (number, FLOAT if joinable is None else joinable.dtype(position))
            for joinable, numbers in zip(self.joinables, self.inputs, strict=True)
            for position, number in enumerate(numbers)
            if number is not None
        ]
        self.parameters = sorted({number for number, dtype in taken if dtype is None})
        self.varying = sorted({n: dtype for n, dtype in taken if dtype is not None and n < entering}.items())

    def _pairs(self) -> Iterator[tuple[Sequence[Argument], Joinable | None]]:
        return zip(self._arguments, self.joinables, strict=True)

    def count_before(self, i: int) -> int:
        """How many arrays there are in front of step `i`."""
        return self.first[i] if i < len(self.steps) else self.count

    def sub_stretch(self, begin: int, end: int) -> SubStretch:
        """Some of the steps as a stretch of their own."""
        steps = self.steps[begin:end]
        own = range(self.first[begin], self.count_before(end))
        taken = sorted({k for step in steps for k in _flat(step.arguments) if k is not None}.difference(own))
        left = [k for k in own if self.last[k] >= end]
        numbers = {k: i for i, k in enumerate([*taken, *own])}
        renumbered = [replace(step, arguments=[_numbered(a, numbers) for a in step.arguments]) for step in steps]
        return SubStretch(Wiring(renumbered, len(taken), [numbers[k] for k in left]), taken, left)

    def call(self, i: int, arrays: Sequence[Any]) -> list[Any] | None:
        """What step `i` computes, by its function or by those that take over; None where it can't be told."""
        step, arguments = self.steps[i], self.arguments(i, arrays)
        first = arguments[0][0] if isinstance(arguments[0], list) else arguments[0]
        if first is None:
            return None
        results = step.function(*arguments) if first.size >= step.smallest else NotImplemented
        if results is NotImplemented:
            results = step.otherwise(*arguments) if step.otherwise is not None else NotImplemented
        made = flat(results)
        return made if len(made) == step.results and all(isinstance(y, np.ndarray) for y in made) else None

    def arguments(self, i: int, arrays: Sequence[Any]) -> list[Any]:
        """The arguments of step `i`, from all arrays so far."""
        arguments: list[Any] = []
        for argument in self._arguments[i]:
            if isinstance(argument, list):
                arguments.append([None if k is None else arrays[k] for k in argument])
            else:
                arguments.append(None if argument is None else arrays[argument])
        return arguments

    def maker(self, i: int, k: int) -> Callable[[Any], Any]:
        """A function that makes result `k` of step `i`, which is a view, from the step's first argument."""
        function = self.steps[i].function
        others: list[list[Any] | None] = [[] if a == [] else None for a in self._arguments[i][1:]]
        return lambda x: flat(function(x, *others))[k]


@dataclass(frozen=True)
class SubStretch:
    """Some steps of a stretch.

    Attributes:
        wiring: The steps, with numbers of their own.
        taken: Numbers, in the stretch, of the arrays that enter.
        left: Numbers, in the stretch, of the results that are read later.
    """

    wiring: Wiring
    taken: list[int]
    left: list[int]


def _numbered(argument: Argument, numbers: dict[int, int]) -> Argument:
    if isinstance(argument, list):
        return [None if k is None else numbers[k] for k in argument]
    return None if argument is None else numbers[argument]


def _without_absent(arguments: Sequence[Argument]) -> list[Argument]:
    """Arguments as a plan passes them: without those at the end that are absent."""
    present = list(arguments)
    while present and present[-1] is None:
        present.pop()
    return present


def _joinable(step: StretchStep) -> Joinable:
    joinable: Joinable = step.function.joinable  # type: ignore[attr-defined]
    return joinable


def _flat(arguments: Sequence[Argument]) -> list[int | None]:
    """Arguments without lists: the arrays of a list one by one."""
    return [k for a in arguments for k in (a if isinstance(a, list) else [a])]
