"""Finds neighbouring ops of a segment that a kernel library runs by one call, or prepares, and writes that call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.kernel import Candidate, KernelContext
from oprack.kernel.invoke import Arguments, bind_inputs, bind_named, by_output_slot
from oprack.kernel.specialization import Argument, JoinedSteps, StretchMaker, StretchStep
from oprack.runtime.plan.binding import BoundOp, Local, present
from oprack.runtime.plan.record import OpRecord

if TYPE_CHECKING:
    from oprack.runtime.kernel_operator import OperatorWithKernel


@dataclass(frozen=True)
class Joinable:
    """An op whose kernel can be part of a stretch, or be prepared for new shapes.

    Attributes:
        maker: What the library makes stretches with; None when the op is part of none but as a view.
        function: What `specialize` of the kernel returned; of a view the kernel, with its attributes.
        arguments: Its positional arguments: local variables, None, or lists of these.
        results: The local variables of the arrays that it returns, None where nobody reads it.
        otherwise: The kernels that take over, as one function of the same arguments, where they can be one.
        is_view: Whether any library may have it between its own ops.
    """

    maker: StretchMaker | None
    function: Callable[..., Any]
    arguments: list[Any]
    results: list[Local | None]
    otherwise: Callable[..., Any] | None
    is_view: bool


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


Specialized = Sequence[tuple[Callable[..., Any] | None, Collection[str]]]
NewContext = Callable[["OperatorWithKernel"], KernelContext]


def joinable(step: BoundOp, specialized: Specialized, context: NewContext) -> Joinable | None:
    """The op as part of a stretch; None when it has to be called on its own, and when its turn comes.

    Args:
        step: The op.
        specialized: For each kernel of the chain what its `specialize` returned, if anything, and what else than inputs
            that function takes.
        context: Makes the `ctx` of an op without LoD for the kernels that take over.
    """
    (function, wanted), chosen = specialized[0], step.record.chosen
    maker = getattr(function, "stretches", None)
    is_view = maker is None and chosen.spec.view and chosen.next is None and not chosen.spec.may_decline
    is_own = (maker is not None or hasattr(function, "prepare")) and "ctx" not in wanted
    if not (is_view or is_own) or step.kernel_sized:
        return None
    # a rule that looks at values is asked in every run, and what it says may depend on the op before
    if step.check.needed and not step.check.by_shapes:
        return None
    results = _results(step)
    if results is None or not any(results) or not all(x.tensor for x in present(step.ins)):
        return None
    try:
        arguments = bind_inputs(chosen.signature, _Locals(step))
        if not is_own:
            function = _alone(step, chosen, function, wanted)
    except _NotPlainError:
        return None
    assert function is not None
    otherwise = _otherwise(step, specialized, arguments, context)
    return Joinable(maker, function, arguments, results, otherwise, is_view)


def _alone(
    step: BoundOp,
    kernel: Candidate,
    specialized: Callable[..., Any] | None,
    wanted: Collection[str],
    context: NewContext | None = None,
) -> Callable[..., Any]:
    """A kernel as a function of its inputs. Raises _NotPlainError when it takes a context that nobody can make."""
    if specialized is not None and "ctx" not in wanted:
        return specialized
    return partial(kernel.spec.function, **bind_named(kernel.signature, _Locals(step, context)))


def _otherwise(
    step: BoundOp, specialized: Specialized, arguments: Sequence[Any], context: NewContext
) -> Callable[..., Any] | None:
    """The kernels behind the first one as one function; None where they take other arguments than that one."""
    given, functions = _identities(arguments), []
    try:
        for kernel, known in list(zip(step.record.chosen.chain(), specialized, strict=True))[1:]:
            own = bind_inputs(kernel.signature, _Locals(step))
            if _identities(own) != given:
                return None
            smallest = kernel.spec.min_numel if kernel.next is not None else 0
            functions.append((_alone(step, kernel, *known, context), len(own), smallest))
    except _NotPlainError:
        return None
    return partial(_first_that_serves, functions) if functions else None


def _identities(arguments: Sequence[Any]) -> list[Any]:
    """Which local variables they are; without those at the end that are absent."""
    found = [list(map(id, a)) if isinstance(a, list) else a and id(a) for a in arguments]
    while found and not found[-1]:
        found.pop()
    return found


def _first_that_serves(functions: Sequence[tuple[Callable[..., Any], int, int]], *arguments: Any) -> Any:
    """What the first function returns that does not decline.

    Args:
        functions: Each with how many arguments it takes, absent ones at the end counted, and how many elements the
            first one has at least.
        *arguments: Arrays, without absent ones at the end.
    """
    first = arguments[0][0] if isinstance(arguments[0], list) else arguments[0]
    for function, count, smallest in functions:
        given = [*arguments[:count], *[None] * (count - len(arguments))]
        result = NotImplemented if first.size < smallest else function(*given)
        if result is not NotImplemented:
            return result
    return NotImplemented


def find_stretches(steps: Sequence[BoundOp], candidates: Sequence[Joinable | None]) -> dict[int, Stretch]:
    """The stretches of a segment by the number of their first op."""
    found = {}
    for maker, begin, end in _rows(candidates):
        stretch = _join(maker, steps, candidates, begin, end)
        if stretch is not None:
            found[stretch.begin] = stretch
    return found


def _rows(candidates: Sequence[Joinable | None]) -> Iterator[tuple[StretchMaker, int, int]]:
    """(maker, number of the first op, number behind the last one) of ops in a row that one library may join.

    Two of them at least are the library's own, the first and the last one among them.
    """
    maker: StretchMaker | None = None
    begin = end = own = 0
    for i, candidate in enumerate([*candidates, None]):
        if candidate is not None and maker is not None:
            if candidate.maker is maker:
                end, own = i + 1, own + 1
                continue
            if candidate.is_view and _is_like(candidate, candidates[begin]):
                continue
        if maker is not None and own > 1:
            yield maker, begin, end
        maker = candidate.maker if candidate is not None else None
        begin, end, own = i, i + 1, 1


def _is_like(view: Joinable, first: Joinable | None) -> bool:
    """Whether a view is one of what a stretch computes with: of an array of the dtype of its first result."""
    assert first is not None
    seen, made = _flat(view.arguments), [x for x in first.results if x is not None]
    return bool(seen) and seen[0] is not None and seen[0].dtype == made[0].dtype and not any(seen[1:])


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
                candidate.is_view,
                candidate.otherwise,
            )
        )
    function = maker.join(joined, len(read), list(leaving)) if leaving else None
    return None if function is None else Stretch(begin, end, function, list(read.values()), list(leaving.values()))


def _first_output(record: OpRecord) -> str:
    return next((n for names in record.op.outputs.values() for n in names if n), "")


def _results(step: BoundOp) -> list[Local | None] | None:
    """The local variable of each array that the kernel returns; None when it returns something else."""
    result = step.record.result
    if isinstance(result, dict):
        return None
    locals_: list[Local | None] = []
    for _, slot, value in by_output_slot(result, step.record.op.info.proto):
        arrays = value if isinstance(value, list) else [value]
        outs = step.outs.get(slot) or [None] * len(arrays)
        if len(outs) != len(arrays) or not all(isinstance(v, np.ndarray) for v in arrays):
            return None
        locals_ += outs
    bound = {id(x) for x in locals_ if x is not None}
    tensors = all(x.tensor for x in locals_ if x is not None)
    return locals_ if tensors and bound == {id(x) for x in present(step.outs)} else None


def _flat(arguments: Sequence[Any]) -> list[Local | None]:
    return [x for a in arguments for x in (a if isinstance(a, list) else [a])]


def _numbered(argument: Any, numbers: dict[int, int]) -> Argument:
    if isinstance(argument, list):
        return [None if x is None else numbers[id(x)] for x in argument]
    return None if argument is None else numbers[id(argument)]


class _NotPlainError(Exception):
    """The kernel takes something else than bare arrays."""


class _Locals(Arguments[Local, Any]):
    """Arguments as local variables, and attributes as they are."""

    def __init__(self, step: BoundOp, context: NewContext | None = None) -> None:
        self._step, self._context = step, context

    def values(self, slot: str) -> Sequence[Local | None]:
        return self._step.ins.get(slot, ())

    def value(self, slot: str, i: int, value: Local | None, container: str) -> Local | None:
        if value is not None and (container or slot in self._step.record.op.info.no_need_buffer_vars):
            raise _NotPlainError
        return value

    def attr(self, name: str) -> Any:
        return self._step.record.op.attrs[name]

    def injected(self, name: str) -> Any:
        if name != "ctx":
            return np if name == "xp" else None
        if self._context is None or any(x.lod for x in present(self._step.ins)):
            raise _NotPlainError
        return self._context(self._step.record.op)

    def absent(self) -> None:
        return None

    def several(self, values: list[Any]) -> list[Any]:
        return values

    def group(self, group: type, fields: dict[str, Any]) -> Any:
        raise _NotPlainError
