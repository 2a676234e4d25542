"""Several ops of a plan run by one native call: their chains bound once more, with each other's results as operands.

What lies between the ops is scratch memory of the thread, placed when a stretch is bound to shapes. What enters is
compared once with what the stretch was bound to, as a call site does for one op; everything inside follows from that.
The steps are planned by `wiring`; what is bound for each is found by `contents`, and where arrays lie by `views` and
`bound_stretch`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import is_, itemgetter
from typing import Any, Protocol, TypeAlias

from oprack.kernel.specialization import JoinedSteps, StretchStep
from oprack.python.implementation import without_collecting
from oprack.python.logs import get_logger

from oprack_onednn.c.runner import NOT_ORDINARY, RUNNER
from oprack_onednn.chain.thread import CHAIN, THREAD, PerThread
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.stretch.bound_stretch import BoundStretch
from oprack_onednn.stretch.contents import StretchContents
from oprack_onednn.stretch.joinable import Joinable, Link
from oprack_onednn.stretch.overlap import BegunStretch
from oprack_onednn.stretch.wiring import SubStretch, Wiring

__all__ = ["STRETCHES", "Joinable", "Link", "joins"]

_LOG = get_logger(__name__)
_MISALIGNED = FLOAT.itemsize - 1
_NONE = False  # nothing can be bound: it stands in for a BoundStretch


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
        self._numbers = [i for i, _ in self._varying]
        self._begins = True

    def begin(self, *values: Any) -> BegunStretch | None:
        """Take part while the ops are prepared for new shapes; see oprack.kernel.specialization."""
        if not self._begins or not THREAD.ready():
            return None
        met = self._met(values)
        if met is None or met[2] & _MISALIGNED or self._entries[met[0]] is not None:
            return None
        contents = StretchContents(self._wiring, values, self._parameters_of(values))
        return BegunStretch(contents, partial(self._end, met))

    def _end(self, met: _Met, begun: BegunStretch, values: Sequence[Any]) -> Any:
        """The arrays that leave, once all ops are prepared, of which some may have run already."""
        key, starts, _ = met
        if not without_collecting(begun.finish):
            self._begins = not begun.failed
            return self(*values)
        if begun.ran:
            begun.contents.arrays = []  # to be bound as a whole when its shapes come again
            self._keep(key, begun.contents)
            return begun.leaving()
        entry = self._keep(key, without_collecting(_bound, begun.contents))
        return self._run(key, entry, values, starts) if entry else None

    def _keep(self, key: tuple[Any, ...], entry: Any) -> Any:
        return self._entries.keep(key, entry, CHAIN * len(self._wiring.steps))

    def _met(self, values: Sequence[Any]) -> _Met | None:
        """What arrays that enter are known by; None for dtypes that are others."""
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
        return key, starts, misplaced

    def __call__(self, *values: Any) -> Any:
        if THREAD.revision != LIBRARY.threads_revision and not THREAD.ready():
            return None
        met = self._met(values)
        if met is None:
            return None
        key, starts, misplaced = met
        entry = self._entries[key]
        kind = entry.__class__
        if entry is None or (
            # the same objects as before, so no other memory
            kind in _FOR_PARAMETERS and not all(map(is_, entry.parameters, self._parameters_of(values)))
        ):
            entry, results = without_collecting(_bind, self._wiring, values, self._parameters_of(values))
            self._keep(key, entry)
            if entry.__class__ is not BoundStretch:
                return results
        elif kind is StretchContents:
            entry = self._keep(key, without_collecting(_bound, entry))
        if kind is _SplitStretch:
            return entry.run(values)
        # primitives were chosen for elements at multiples of four bytes
        return None if not entry or misplaced & _MISALIGNED else self._run(key, entry, values, starts)

    def _run(
        self, key: tuple[Any, ...], entry: BoundStretch, values: Sequence[Any], starts: Sequence[int]
    ) -> Sequence[Any] | None:
        results = entry.enter(zip(self._numbers, starts, strict=True))
        if entry.size > THREAD.state.capacity:
            THREAD.arena(entry.size)
        status = self._native_run(entry.native.pointer)
        if not status:
            return entry.leave(values, results)
        # nothing that entered was written to, so the ops can run one by one: the one that fails again says why
        if status != NOT_ORDINARY:
            self._entries.keep(key, _NONE)
            _LOG.warning("%s; its ops run one by one from now on", _failure(self._wiring, entry, status))
        return None


_FOR_PARAMETERS = BoundStretch, StretchContents
_Met: TypeAlias = "tuple[tuple[Any, ...], list[int], int]"
"""Of arrays that enter: the key of their shapes and strides, the addresses of those that vary, all of these or'ed."""


def _bound(contents: StretchContents) -> BoundStretch | bool:
    """All steps, bound; _NONE where they can't be."""
    contents.arrays = []  # which nobody looks at any more
    try:
        return BoundStretch(contents)
    except NotServedError:
        return _NONE


def _bind(wiring: Wiring, values: Sequence[Any], parameters: Any) -> tuple[Any, Sequence[Any] | None]:
    """Bind the chains of a stretch by a dry run; where an op has to run on its own, the stretch is split.

    Args:
        wiring: The steps.
        values: The arrays that enter.
        parameters: Those of them that stay.

    Returns:
        What was bound, _NONE where nothing can be, and the arrays that leave where all ops ran.
    """
    contents, split, begin = StretchContents(wiring, values, parameters), _SplitStretch(wiring), 0
    computed, count = split.room(values), len(wiring.steps)
    for i in range(count):
        if contents.add(i):
            continue
        split.divide(begin, i)
        if not split.compute(computed, begin, i + 1):
            return _NONE, None
        contents.arrays, begin = computed[: wiring.count_before(i + 1)], i + 1
    if not begin:
        return _bound(contents), None
    split.divide(begin, count)
    results = split.leaving(computed) if split.compute(computed, begin, count) else None
    return (split if split.between else _NONE), results


class _SplitStretch:
    """A stretch some of whose ops run on their own for certain shapes, and the others as stretches between them.

    Attributes:
        between: The stretches between those ops, each by the number of its first step.
    """

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self.between: dict[int, tuple[SubStretch, _StretchFunction]] = {}

    def divide(self, begin: int, end: int) -> None:
        """Make a stretch of some steps, behind which one has to run on its own, where two of them have chains."""
        assert RUNNER.run is not None
        natives = [i for i in range(begin, end) if self._wiring.joinables[i] is not None]
        if len(natives) > 1:
            steps = self._wiring.sub_stretch(natives[0], natives[-1] + 1)
            self.between[natives[0]] = steps, _StretchFunction(steps.wiring, RUNNER.run)

    def room(self, values: Sequence[Any]) -> list[Any]:
        """All arrays of the stretch, of which those that enter are known."""
        return [*values, *[None] * (self._wiring.count - self._wiring.entering)]

    def leaving(self, arrays: Sequence[Any]) -> list[Any]:
        """Those of all arrays that leave."""
        return [arrays[k] for k in self._wiring.leaving]

    def run(self, values: Sequence[Any]) -> Sequence[Any] | None:
        """The arrays that leave; None where the plan has to call the ops itself."""
        arrays = self.room(values)
        return self.leaving(arrays) if self.compute(arrays, 0, len(self._wiring.steps)) else None

    def compute(self, arrays: list[Any], begin: int, end: int) -> bool:
        """Fill in the results of some steps, which neither begin nor end within a stretch; False where one can't be."""
        wiring, i = self._wiring, begin
        while i < end:
            if i in self.between:
                steps, function = self.between[i]
                found = function(*[arrays[k] for k in steps.taken])
                if found is not None:
                    for k, y in zip(steps.left, found, strict=True):
                        arrays[k] = y
                    i += len(steps.wiring.steps)
                    continue
            made = wiring.call(i, arrays)
            if made is None:
                return False
            arrays[wiring.first[i] : wiring.first[i] + len(made)] = made
            i += 1
        return True


def _failure(wiring: Wiring, entry: BoundStretch, status: int) -> str:
    """Which op failed, for the log; the op itself raises when it fails again."""
    step = wiring.steps[entry.ops[entry.native.failed]]
    return f"op {step.op_type}, which writes {step.variable}: oneDNN: a primitive failed: {_c.STATUS[status]}"
