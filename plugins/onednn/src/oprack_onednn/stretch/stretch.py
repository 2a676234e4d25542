"""Several ops of a plan run by one native call: their chains bound once more, with each other's results as operands.

What lies between the ops is scratch memory of the thread, placed when a stretch is bound to shapes. What enters is
compared once with what the stretch was bound to, as a call site does for one op; everything inside follows from that.
The steps are planned by `wiring`, and where their arrays lie by `bound_stretch` and `views`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import is_, itemgetter
from typing import Any

from oprack.kernel.stretch import JoinedSteps, StretchStep

from oprack_onednn.c.runner import NOT_ORDINARY, RUNNER
from oprack_onednn.chain.memory import memory_order
from oprack_onednn.chain.thread import CHAIN, THREAD, PerThread
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.stretch.bound_stretch import BoundStretch, StretchContents
from oprack_onednn.stretch.part import Joinable, Link
from oprack_onednn.stretch.views import copied, view_of
from oprack_onednn.stretch.wiring import SubStretch, Wiring

__all__ = ["STRETCHES", "Joinable", "Link", "joins"]

_LOG = logging.getLogger(__name__)
_MISALIGNED = FLOAT.itemsize - 1
_NONE = False  # nothing can be bound: it stands in for a BoundStretch
# Bytes of scratch memory, which a thread keeps, for all that lies between the ops of a stretch at one time: where there
# are more, a call of Python for each op is nothing beside its work.
_MOST = 1 << 26


def joins(function: Callable[..., Any], part: Joinable) -> Callable[..., Any]:
    """Let plans make the function part of stretches, and prepare it for new shapes; returns it."""
    function.stretches, function.part = STRETCHES, part  # type: ignore[attr-defined]
    function.prepare = lambda *arguments: part.prepare(*part.arrange(*arguments))  # type: ignore[attr-defined]
    return function


class Stretches:
    """Makes stretches of functions that have a Part."""

    def join(self, steps: Sequence[StretchStep], entering: int, leaving: Sequence[int]) -> JoinedSteps | None:
        """One function of several steps; None without the compiled runner, which alone makes it worthwhile."""
        if not LIBRARY.usable() or RUNNER.run is None:
            return None
        wiring = Wiring(steps, entering, leaving)
        if wiring.parameters and max(wiring.parameters) >= entering:
            return None  # a parameter that another op computes is none
        return _Joined(wiring, RUNNER.run)


STRETCHES = Stretches()


class _Joined:
    """A stretch as a plan calls it: it binds itself to each shape that it meets, in each thread."""

    def __init__(self, wiring: Wiring, run: Callable[[int], int]) -> None:
        self._wiring, self._native_run = wiring, run
        self._varying, kept = wiring.varying, wiring.parameters
        # for two and more it gives a tuple in one go: a net has hundreds of parameters
        one_by_one: Callable[[Any], Any] = lambda values: tuple(values[i] for i in kept)  # noqa: E731
        self._parameters_of = itemgetter(*kept) if len(kept) > 1 else one_by_one
        # of every thread
        self._entries = PerThread()

    def __call__(self, *values: Any) -> Sequence[Any] | None:
        if THREAD.revision != LIBRARY.threads_revision and not THREAD.ready():
            return None
        key: tuple[Any, ...] = (THREAD.setting,)
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
        if entry.__class__ is _Sections:
            return entry.run(values)  # type: ignore[no-any-return]
        # the same objects as before, so no other memory
        if not all(map(is_, entry.parameters, self._parameters_of(values))):
            return self._bind(key, values)
        # primitives were chosen for elements at multiples of four bytes
        return None if misplaced & _MISALIGNED else self._run(key, entry, values, starts)

    def _bind(self, key: tuple[Any, ...], values: Sequence[Any]) -> Sequence[Any] | None:
        """Run the ops one by one for shapes or parameters that are new, and keep what that bound."""
        bound, results = _bound(self._wiring, values, self._parameters_of(values))
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
            if entry.made is None:
                return results
            return entry.made(dict(enumerate(values)) | {i: y for (i, _), y in zip(entry.takes, results, strict=True)})
        # nothing that entered was written to, so the ops can run one by one: the one that fails again says why
        if status != NOT_ORDINARY:
            self._entries.keep(key, _NONE)
            _LOG.warning("%s; its ops run one by one from now on", _failure(self._wiring, entry, status))
        return None


def _bound(
    wiring: Wiring, values: Sequence[Any], parameters: Any
) -> tuple[BoundStretch | _Sections | None, Sequence[Any] | None]:
    """Run the ops one by one, and bind their chains: what was bound, and the arrays that leave; None for either."""
    arrays: list[Any] = [*values]
    pieces, alone = StretchContents([], [], {}, {}), list[int]()
    for i, step in enumerate(wiring.steps):
        inputs = [None if number is None else arrays[number] for number in wiring.inputs[i]]
        made = None if inputs[0] is None else wiring.call(i, arrays)
        if made is None:
            return None, None
        part = wiring.parts[i]
        if part is None:
            served = _seen(wiring, i, inputs[0], made, pieces)
        else:
            served = (inputs[0].size >= step.smallest or part.is_exact) and _native(part, inputs, made, pieces)
        if not served:
            alone.append(i)
        arrays += made
    results = [arrays[number] for number in wiring.leaving]
    if alone:
        return _sections(wiring, alone), results
    stretch = BoundStretch(wiring, pieces, parameters)
    return (stretch if stretch.size <= _MOST else None), results


class _Sections:
    """A stretch some of whose ops run on their own for certain shapes, and the others as stretches between them."""

    def __init__(self, wiring: Wiring, sections: Sequence[tuple[SubStretch, _Joined]], begins: Sequence[int]) -> None:
        self._wiring, self._blank = wiring, [None] * (wiring.count - wiring.entering)
        self._sections = dict(zip(begins, sections, strict=True))

    def run(self, values: Sequence[Any]) -> Sequence[Any] | None:
        """The arrays that leave; None where the plan has to call the ops itself."""
        wiring, arrays = self._wiring, [*values, *self._blank]
        i, count = 0, len(wiring.steps)
        while i < count:
            known = self._sections.get(i)
            found = None if known is None else known[1](*[arrays[k] for k in known[0].taken])
            if found is not None and known is not None:
                for k, y in zip(known[0].left, found, strict=True):
                    arrays[k] = y
                i += len(known[0].wiring.steps)
                continue
            made = wiring.call(i, arrays)
            if made is None:
                return None
            arrays[wiring.first[i] : wiring.first[i] + len(made)] = made
            i += 1
        return [arrays[k] for k in wiring.leaving]


def _sections(wiring: Wiring, alone: Sequence[int]) -> _Sections | None:
    """The steps between those that run on their own, as stretches; None where none of them has two chains."""
    assert RUNNER.run is not None
    sections, begins = list[tuple[SubStretch, _Joined]](), list[int]()
    for before, end in pairwise([-1, *alone, len(wiring.steps)]):
        natives = [i for i in range(before + 1, end) if wiring.parts[i] is not None]
        if len(natives) > 1:
            section = wiring.section(natives[0], natives[-1] + 1)
            sections.append((section, _Joined(section.wiring, RUNNER.run)))
            begins.append(natives[0])
    return _Sections(wiring, sections, begins) if sections else None


def _native(part: Joinable, inputs: Sequence[Any], made: list[Any], pieces: StretchContents) -> bool:
    """Bind the chain of an op that computed `made`; False where none can be."""
    bound = part.bound(*inputs)
    if bound is None or bound.chain.native is None:
        return False
    if [(y.shape, y.dtype) for y in made] != [(o.shape, o.dtype) for o in bound.outlets]:
        return False
    for k, (y, outlet) in enumerate(zip(made, bound.outlets, strict=True)):
        # where the function declined, because of a NaN for one, another one gave the result in its own layout; the ops
        # behind are bound to what the chain will write
        if y.strides != outlet.strides:
            made[k] = outlet.take()[0]
            made[k][...] = y
    looked = inputs[0] if part.looks_at == "input" else made[0]
    if part.looks_at and memory_order(looked.shape, looked.strides) is None:
        return False
    pieces.bounds.append(bound)
    pieces.looks.append(looked.size)
    return True


def _seen(wiring: Wiring, i: int, x: Any, made: list[Any], pieces: StretchContents) -> bool:
    """Find out where the results of view number `i` lie; False where they may be anything."""
    bound = None
    for k, y in enumerate(made):
        number = wiring.first[i] + k
        if not y.size:
            pieces.empty[number] = y
            continue
        view = view_of(x, y, wiring.inputs[i][0], wiring.maker(i, k))
        if view is not None:
            pieces.views[number] = view
            continue
        copy = None if k else copied(wiring.steps[i].op_type, x, y)
        if copy is None:
            return False
        bound, made[k] = copy
    pieces.bounds.append(bound)
    pieces.looks.append(0)
    return True


def _failure(wiring: Wiring, entry: BoundStretch, status: int) -> str:
    """Which op failed, for the log; the op itself raises when it fails again."""
    step = wiring.steps[entry.ops[entry.native.failed]]
    return f"op {step.op_type}, which writes {step.variable}: oneDNN: a primitive failed: {_c.STATUS[status]}"
