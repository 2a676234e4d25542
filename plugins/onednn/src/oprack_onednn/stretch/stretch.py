"""Several ops of a plan run by one native call: their chains bound once more, with each other's results as operands.

What lies between the ops is scratch memory of the thread, placed when a stretch is bound to shapes. What enters is
compared once with what the stretch was bound to, as a call site does for one op; everything inside follows from that.
The steps are planned by `wiring`, and where their arrays lie by `bound_stretch` and `views`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from operator import is_, itemgetter
from typing import Any, Protocol

from oprack.kernel.specialization import JoinedSteps, StretchStep
from oprack.python.logs import get_logger

from oprack_onednn.c.runner import NOT_ORDINARY, RUNNER
from oprack_onednn.chain.memory import memory_order
from oprack_onednn.chain.thread import CHAIN, THREAD, PerThread
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.stretch.bound_stretch import BoundStretch, StretchContents
from oprack_onednn.stretch.joinable import Joinable, Link
from oprack_onednn.stretch.views import copied, view_of
from oprack_onednn.stretch.wiring import SubStretch, Wiring

__all__ = ["STRETCHES", "Joinable", "Link", "joins"]

_LOG = get_logger(__name__)
_MISALIGNED = FLOAT.itemsize - 1
_NONE = False  # nothing can be bound: it stands in for a BoundStretch
# Bytes of scratch memory, which a thread keeps, for all that lies between the ops of a stretch at one time: where there
# are more, a call of Python for each op is nothing beside its work.
_MOST = 1 << 26


class JoinableFunction(Protocol):
    """A function that plans can make part of stretches."""

    joinable: Joinable

    def __call__(self, *arguments: Any) -> Any: ...


def joins(function: Any, joinable: Joinable) -> JoinableFunction:
    """Let plans make a function part of stretches, and prepare it for new shapes; returns the function."""
    function.stretches, function.joinable = STRETCHES, joinable
    function.prepare = lambda *arguments: joinable.prepare(*joinable.arrange(*arguments))
    joined: JoinableFunction = function
    return joined


class Stretches:
    """Makes stretches of functions that have a Joinable."""

    def join(self, steps: Sequence[StretchStep], entering: int, leaving: Sequence[int]) -> JoinedSteps | None:
        """One function of several steps; None without the compiled runner, which alone makes it worthwhile."""
        if not LIBRARY.usable() or RUNNER.run is None:
            return None
        wiring = Wiring(steps, entering, leaving)
        if wiring.parameters and max(wiring.parameters) >= entering:
            return None  # another op computes it, so its address is not fixed
        return _StretchFunction(wiring, RUNNER.run)


STRETCHES = Stretches()


class _StretchFunction:
    """A stretch as a plan calls it: it binds itself to each shape that it meets, in each thread."""

    def __init__(self, wiring: Wiring, run: Callable[[int], int]) -> None:
        self._wiring, self._native_run = wiring, run
        self._varying, kept = wiring.varying, wiring.parameters
        # for two and more it gives a tuple in one go: a net has hundreds of parameters
        one_by_one: Callable[[Any], Any] = lambda values: tuple(values[i] for i in kept)  # noqa: E731
        self._parameters_of = itemgetter(*kept) if len(kept) > 1 else one_by_one
        self._entries = PerThread()

    def __call__(self, *values: Any) -> Sequence[Any] | None:
        if THREAD.revision != LIBRARY.threads_revision and not THREAD.ready():
            return None
        key: tuple[Any, ...] = (THREAD.cache_key,)
        starts, misplaced = [], 0
        for i, dtype in self._varying:
            x = values[i]
            if x.dtype is not dtype:
                return None
            key += (x.shape, x.strides)
            start = address(x)
            starts.append(start)
            misplaced |= start
        entry = self._entries[key]
        if not entry:
            return self._bind(key, values) if entry is None else None
        if entry.__class__ is _SplitStretch:
            return entry.run(values)
        # the same objects as before, so no other memory
        if not all(map(is_, entry.parameters, self._parameters_of(values))):
            return self._bind(key, values)
        # primitives were chosen for elements at multiples of four bytes
        return None if misplaced & _MISALIGNED else self._run(key, entry, values, starts)

    def _bind(self, key: tuple[Any, ...], values: Sequence[Any]) -> Sequence[Any] | None:
        """Run the ops one by one for shapes or parameters that are new, and keep what that bound."""
        bound, results = _run_and_bind(self._wiring, values, self._parameters_of(values))
        self._entries.keep(key, _NONE if bound is None else bound, CHAIN * len(self._wiring.steps))
        return results

    def _run(self, key: tuple[Any, ...], entry: BoundStretch, values: Sequence[Any], starts: Sequence[int]) -> Any:
        table, results = entry.native.values, []
        for (i, _), start in zip(self._varying, starts, strict=True):
            table[i] = start
        for i, take in entry.takes:
            y, table[i] = take()
            results.append(y)
        for i, root, offset in entry.shifted:
            table[i] = table[root] + offset
        if entry.size > THREAD.state.capacity:
            THREAD.arena(entry.size)
        status = self._native_run(entry.native.pointer)
        if not status:
            if entry.results is None:
                return results
            return entry.results(
                dict(enumerate(values)) | {i: y for (i, _), y in zip(entry.takes, results, strict=True)}
            )
        # nothing that entered was written to, so the ops can run one by one: the one that fails again says why
        if status != NOT_ORDINARY:
            self._entries.keep(key, _NONE)
            _LOG.warning("%s; its ops run one by one from now on", _failure(self._wiring, entry, status))
        return None


def _run_and_bind(
    wiring: Wiring, values: Sequence[Any], parameters: Any
) -> tuple[BoundStretch | _SplitStretch | None, Sequence[Any] | None]:
    """Run the ops one by one, and bind their chains.

    Args:
        wiring: The steps.
        values: The arrays that enter.
        parameters: Those of them that stay.

    Returns:
        What was bound, and the arrays that leave; None for either where there is none.
    """
    arrays: list[Any] = [*values]
    contents, alone = StretchContents([], [], {}, {}), list[int]()
    for i, step in enumerate(wiring.steps):
        inputs = [None if number is None else arrays[number] for number in wiring.inputs[i]]
        x = inputs[0]
        made = None if x is None else wiring.call(i, arrays)
        if x is None or made is None:
            return None, None
        joinable = wiring.joinables[i]
        if joinable is None:
            served = _place_results(wiring, i, x, made, contents)
        else:
            is_native = x.size >= step.smallest or joinable.is_exact
            served = is_native and _bind_chain(joinable, inputs, made, contents)
        if not served:
            alone.append(i)
        arrays += made
    results = [arrays[number] for number in wiring.leaving]
    if alone:
        return _split(wiring, alone), results
    stretch = BoundStretch(wiring, contents, parameters)
    return (stretch if stretch.size <= _MOST else None), results


class _SplitStretch:
    """A stretch some of whose ops run on their own for certain shapes, and the others as stretches between them.

    Args:
        wiring: The whole stretch.
        between: The stretches between those ops, each by the number of its first step.
    """

    def __init__(self, wiring: Wiring, between: Mapping[int, tuple[SubStretch, _StretchFunction]]) -> None:
        self._wiring, self._blank = wiring, [None] * (wiring.count - wiring.entering)
        self._between = between

    def run(self, values: Sequence[Any]) -> Sequence[Any] | None:
        """The arrays that leave; None where the plan has to call the ops itself."""
        wiring, arrays = self._wiring, [*values, *self._blank]
        i, count = 0, len(wiring.steps)
        while i < count:
            if i in self._between:
                steps, function = self._between[i]
                found = function(*[arrays[k] for k in steps.taken])
                if found is not None:
                    for k, y in zip(steps.left, found, strict=True):
                        arrays[k] = y
                    i += len(steps.wiring.steps)
                    continue
            made = wiring.call(i, arrays)
            if made is None:
                return None
            arrays[wiring.first[i] : wiring.first[i] + len(made)] = made
            i += 1
        return [arrays[k] for k in wiring.leaving]


def _split(wiring: Wiring, alone: Sequence[int]) -> _SplitStretch | None:
    """The steps between those that run on their own, as stretches; None where none of them has two chains."""
    assert RUNNER.run is not None
    between: dict[int, tuple[SubStretch, _StretchFunction]] = {}
    for before, end in pairwise([-1, *alone, len(wiring.steps)]):
        natives = [i for i in range(before + 1, end) if wiring.joinables[i] is not None]
        if len(natives) > 1:
            steps = wiring.sub_stretch(natives[0], natives[-1] + 1)
            between[natives[0]] = steps, _StretchFunction(steps.wiring, RUNNER.run)
    return _SplitStretch(wiring, between) if between else None


def _bind_chain(joinable: Joinable, inputs: Sequence[Any], made: list[Any], contents: StretchContents) -> bool:
    """Add the chain of an op that computed `made` to the contents; False where none can be bound."""
    link = joinable.link(*inputs)
    if link is None or link.chain.native is None:
        return False
    if [(y.shape, y.dtype) for y in made] != [(o.shape, o.dtype) for o in link.outlets]:
        return False
    for k, (y, outlet) in enumerate(zip(made, link.outlets, strict=True)):
        # where the function declined, because of a NaN for one, another one gave the result in its own layout; the ops
        # behind are bound to what the chain will write
        if y.strides != outlet.strides:
            made[k] = outlet.take()[0]
            made[k][...] = y
    looked = inputs[0] if joinable.looks_at == "input" else made[0]
    if joinable.looks_at and memory_order(looked.shape, looked.strides) is None:
        return False
    contents.links.append(link)
    contents.looks.append(looked.size)
    return True


def _place_results(wiring: Wiring, i: int, x: Any, made: list[Any], contents: StretchContents) -> bool:
    """Find out where the results of view number `i` lie; False where they may be anything."""
    link, source = None, wiring.inputs[i][0]
    assert source is not None  # x is there
    for k, y in enumerate(made):
        number = wiring.first[i] + k
        if not y.size:
            contents.empty[number] = y
            continue
        view = view_of(x, y, source, wiring.maker(i, k))
        if view is not None:
            contents.views[number] = view
            continue
        copy = None if k else copied(wiring.steps[i].op_type, x, y)
        if copy is None:
            return False
        link, made[k] = copy
    contents.links.append(link)
    contents.looks.append(0)
    return True


def _failure(wiring: Wiring, entry: BoundStretch, status: int) -> str:
    """Which op failed, for the log; the op itself raises when it fails again."""
    step = wiring.steps[entry.ops[entry.native.failed]]
    return f"op {step.op_type}, which writes {step.variable}: oneDNN: a primitive failed: {_c.STATUS[status]}"
