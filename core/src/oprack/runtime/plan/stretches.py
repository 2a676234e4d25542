"""Finds neighbouring ops of a segment that a kernel library runs by one call, or prepares, and writes that call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from oprack.kernel.invoke import Arguments, bind_inputs, returned
from oprack.kernel.stretch import Argument, JoinedSteps, StretchMaker, StretchStep
from oprack.runtime.plan.generated import BoundOp, Local, present
from oprack.runtime.record import OpRecord


@dataclass(frozen=True)
class Joinable:
    """An op whose kernel can be part of a stretch, or be prepared for new shapes.

    Attributes:
        maker: What the library makes stretches with; None when the op is part of none.
        function: What `specialize` of the kernel returned.
        arguments: Its positional arguments: local variables, None, or lists of these.
        results: The local variables of what it returns, None where nobody reads it.
    """

    maker: StretchMaker | None
    function: Callable[..., Any]
    arguments: list[Any]
    results: list[Local | None]


@dataclass(frozen=True)
class Stretch:
    """Ops number `begin` to `end` - 1 in one call of `function`."""

    begin: int
    end: int
    function: JoinedSteps
    entering: list[Local]
    leaving: list[Local]

    def call(self, name: str) -> str:
        """The expression that calls the function by this name."""
        return f"{name}({', '.join(x.name for x in self.entering)})"


def joinable(step: BoundOp, function: Callable[..., Any] | None, wanted: Collection[str]) -> Joinable | None:
    """The op as part of a stretch; None when it has to be called on its own, and when its turn comes.

    Args:
        step: The op.
        function: What `specialize` of its kernel returned, if anything.
        wanted: What else than inputs the function takes.
    """
    maker = getattr(function, "stretches", None)
    if function is None or wanted or step.kernel_sized or (maker is None and not hasattr(function, "prepare")):
        return None
    # a rule that looks at values is asked in every run, and what it says may depend on the op before
    if step.check.needed and not step.check.by_shapes:
        return None
    results = _results(step)
    if results is None or not any(results) or not all(x.tensor for x in present(step.ins)):
        return None
    try:
        arguments = bind_inputs(step.record.chosen.signature, _Locals(step))
    except _NotPlainError:
        return None
    return Joinable(maker, function, arguments, results)


def find_stretches(steps: Sequence[BoundOp], candidates: Sequence[Joinable | None]) -> dict[int, Stretch]:
    """The stretches of a segment by the number of their first op."""
    found = {}
    for maker, group in groupby(range(len(steps)), lambda i: _maker(candidates[i])):
        numbers = list(group)
        if maker is not None and len(numbers) > 1:
            stretch = _join(maker, steps, candidates, numbers[0], numbers[-1] + 1)
            if stretch is not None:
                found[stretch.begin] = stretch
    return found


def _maker(candidate: Joinable | None) -> StretchMaker | None:
    return candidate.maker if candidate else None


def _join(
    maker: StretchMaker, steps: Sequence[BoundOp], candidates: Sequence[Joinable | None], begin: int, end: int
) -> Stretch | None:
    chosen = [c for c in candidates[begin:end] if c is not None]
    made = {id(x) for c in chosen for x in c.results if x is not None}
    read = {id(x): x for c in chosen for x in _flat(c.arguments) if x is not None and id(x) not in made}
    numbers = {key: i for i, key in enumerate(read)}
    leaving: dict[int, Local] = {}
    joined = []
    count = len(read)
    for i, candidate in enumerate(chosen, begin):
        arguments = [_numbered(argument, numbers) for argument in candidate.arguments]
        for k, local in enumerate(candidate.results):
            if local is not None:
                numbers[id(local)] = count + k
                if max(local.used, local.shaped) >= end:
                    leaving[count + k] = local
        count += len(candidate.results)
        record = steps[i].record
        joined.append(
            StretchStep(
                *(record.op.type, _first_output(record), candidate.function, arguments, len(candidate.results)),
                record.chosen.spec.min_numel if record.chosen.next is not None else 0,
            )
        )
    function = maker.join(joined, len(read), list(leaving)) if leaving else None
    return None if function is None else Stretch(begin, end, function, list(read.values()), list(leaving.values()))


def _first_output(record: OpRecord) -> str:
    return next((n for names in record.op.outputs.values() for n in names if n), "")


def _results(step: BoundOp) -> list[Local | None] | None:
    """The local variable of each array that the kernel returns; None when it returns something else."""
    result = step.record.result
    values = result if isinstance(result, tuple) else (result,)
    if not all(isinstance(v, np.ndarray) for v in values):
        return None
    locals_ = []
    for _, slot, _ in returned(result, step.record.op.info.proto):
        outs = step.outs.get(slot) or [None]
        if len(outs) > 1 or (outs[0] is not None and not outs[0].tensor):
            return None
        locals_.append(outs[0])
    bound = {id(x) for x in locals_ if x is not None}
    return locals_ if len(locals_) == len(values) and bound == {id(x) for x in present(step.outs)} else None


def _flat(arguments: Sequence[Any]) -> list[Local | None]:
    return [x for a in arguments for x in (a if isinstance(a, list) else [a])]


def _numbered(argument: Any, numbers: dict[int, int]) -> Argument:
    if isinstance(argument, list):
        return [None if x is None else numbers[id(x)] for x in argument]
    return None if argument is None else numbers[id(argument)]


class _NotPlainError(Exception):
    """The kernel takes something else than bare arrays."""


class _Locals(Arguments[Local, Any]):
    """Arguments as local variables."""

    def __init__(self, step: BoundOp) -> None:
        self._step = step

    def values(self, slot: str) -> Sequence[Local | None]:
        return self._step.ins.get(slot, ())

    def value(self, slot: str, i: int, value: Local | None, container: str) -> Local | None:
        if value is not None and (container or slot in self._step.record.op.info.no_need_buffer_vars):
            raise _NotPlainError
        return value

    def attr(self, name: str) -> Any:
        raise _NotPlainError

    def injected(self, name: str) -> Any:
        raise _NotPlainError

    def absent(self) -> None:
        return None

    def several(self, values: list[Any]) -> list[Any]:
        return values

    def group(self, group: type, fields: dict[str, Any]) -> Any:
        raise _NotPlainError
