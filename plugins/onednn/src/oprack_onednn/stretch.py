"""Several ops of a plan run by one native call: their chains bound once more, with each other's results as operands.

What lies between the ops is scratch memory of the thread, placed when a stretch is bound to shapes. What enters is
compared once with what the stretch was bound to, as a call site does for one op; everything inside follows from that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any

from oprack.kernel.stretch import Argument, JoinedSteps, StretchStep

from oprack_onednn import _c
from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import Outlet, memory_order
from oprack_onednn.operands import FLOAT, address
from oprack_onednn.runner import NOT_ORDINARY, RUNNER, NativeChain, NativeStretch
from oprack_onednn.thread import THREAD, PerThread

if TYPE_CHECKING:
    from oprack_onednn.bound_chain import BoundChain

_LOG = logging.getLogger(__name__)
_ALIGN = 64
_MISALIGNED = FLOAT.itemsize - 1
# As of a call site: shapes that came again, and shapes that came once.
_SHAPES, _NEW_SHAPES = 64, 8
# Bytes between the ops of a stretch up to which they are placed in scratch memory, which a thread keeps: where there
# are more, a call of Python for each op is nothing beside its work.
_MOST = 1 << 26


@dataclass(frozen=True)
class Bound:
    """One op's chain for certain shapes and parameters.

    Attributes:
        chain: The chain, which takes the inputs that vary, and then the results.
        outlets: Allocate the results.
        given: Positions of the inputs that the chain takes.
    """

    chain: BoundChain
    outlets: Sequence[Outlet]
    given: Sequence[int]


@dataclass(frozen=True)
class Part:
    """What a stretch has to know of a prepared function.

    Attributes:
        free: Positions of the inputs that vary from run to run, after `arrange`; all others are parameters.
        bound: Called with the inputs, it returns their Bound, or None when nothing can be bound for them.
        arrange: Makes one row of inputs of the function's arguments.
        looks_at: "input" or "result" where the function declines for NaN and infinities in its first input, or in what
            it returns; else "".
        prepare: Called with the inputs, it makes ready what the function needs for arrays like these, of which it reads
            the parameters alone; it returns a result that nobody computed, or None when the function may decline.
    """

    free: Sequence[int]
    bound: Callable[..., Bound | None]
    arrange: Callable[..., Sequence[Any]] = lambda *arguments: arguments
    looks_at: str = ""
    prepare: Callable[..., Any] = lambda *inputs: None


def joins(function: Callable[..., Any], part: Part) -> Callable[..., Any]:
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
        wiring = _Wiring(steps, entering, leaving)
        if wiring.parameters and max(wiring.parameters) >= entering:
            return None  # a parameter that another op computes is none
        return _Joined(wiring, RUNNER.run)


STRETCHES = Stretches()


class _Wiring:
    """Which op of a stretch takes which arrays, by their numbers.

    Attributes:
        inputs: For each step, in one row, what it takes; None for what is absent.
        first: For each step the number of its first result.
        varying: Arrays that enter and may be others in each run.
        parameters: Arrays that enter and stay; their addresses are set once.
        last: For each result that does not leave the number of the last step that reads it.
    """

    def __init__(self, steps: Sequence[StretchStep], entering: int, leaving: Sequence[int]) -> None:
        self.steps, self.entering, self.leaving = steps, entering, leaving
        self.parts: list[Part] = [step.function.part for step in steps]  # type: ignore[attr-defined]
        self._arguments = [_without_absent(step.arguments) for step in steps]
        self.inputs = [list(p.arrange(*given)) for given, p in zip(self._arguments, self.parts, strict=True)]
        self.first, count = list[int](), entering
        for step in steps:
            self.first.append(count)
            count += step.results
        self.count = count
        taken = [
            (number, position in part.free)
            for part, numbers in zip(self.parts, self.inputs, strict=True)
            for position, number in enumerate(numbers)
            if number is not None
        ]
        self.parameters = sorted({number for number, free in taken if not free})
        self.varying = sorted({number for number, free in taken if free and number < entering})
        self.last = {number: i for i, numbers in enumerate(self.inputs) for number in numbers if number is not None}

    def arguments(self, i: int, arrays: Sequence[Any]) -> list[Any]:
        """The arguments of step `i`, from all arrays so far."""
        found: list[Any] = []
        for argument in self._arguments[i]:
            if isinstance(argument, list):
                found.append([None if k is None else arrays[k] for k in argument])
            else:
                found.append(None if argument is None else arrays[argument])
        return found


def _without_absent(arguments: Sequence[Argument]) -> list[Argument]:
    """Arguments as a plan passes them: without those at the end that are absent."""
    found = list(arguments)
    while found and found[-1] is None:
        found.pop()
    return found


class _Run:
    """A stretch for arrays of certain shapes and strides, and for certain parameters.

    Attributes:
        parameters: The arrays whose addresses are set.
        native: The chains.
        takes: For each array that leaves, its number and what allocates it.
        size: Bytes of scratch memory.
    """

    __slots__ = ("bounds", "native", "parameters", "size", "takes")

    def __init__(self, wiring: _Wiring, bounds: Sequence[Bound], looks: Sequence[int], parameters: Any) -> None:
        self.bounds, self.parameters = bounds, parameters
        chains, slots = [], list[int]()
        outlets = {first + k: o for first, b in zip(wiring.first, bounds, strict=True) for k, o in enumerate(b.outlets)}
        for i, bound in enumerate(bounds):
            native = bound.chain.native
            assert native is not None
            look = wiring.parts[i].looks_at
            number = wiring.inputs[i][0] if look == "input" else wiring.first[i]
            seen = [(NativeChain(1, looks=[(0, looks[i])]), number)] if look else []
            if look == "input":
                chains.append(seen[0][0])
                slots.append(number)
            chains.append(native)
            slots += [wiring.inputs[i][position] for position in bound.given]
            slots += [wiring.first[i] + k for k in range(len(bound.outlets))]
            if look == "result":
                chains.append(seen[0][0])
                slots.append(number)
        self.takes = [(number, outlets[number].take) for number in wiring.leaving]
        scratch = max(-(-bound.chain.size // _ALIGN) * _ALIGN for bound in bounds)
        between = {number: outlet.nbytes for number, outlet in outlets.items() if number not in wiring.leaving}
        offsets, self.size = _placed(between, wiring, scratch)
        self.native = NativeStretch(THREAD.state, chains, slots, wiring.count, list(offsets.items()))


def _placed(sizes: dict[int, int], wiring: _Wiring, start: int) -> tuple[dict[int, int], int]:
    """The offset of each array between the ops, behind `start`, and where the last of them ends.

    An array gets the first gap among those that are read at the same time or later.
    """
    offsets: dict[int, int] = {}
    alive: list[tuple[int, int, int]] = []  # (offset, end, last step that reads it)
    end = start
    for i, first in enumerate(wiring.first):
        alive = [a for a in alive if a[2] >= i]
        for number in range(first, first + wiring.steps[i].results):
            if number not in sizes:
                continue
            size, offset = -(-sizes[number] // _ALIGN) * _ALIGN, start
            for begin, behind, _ in sorted(alive):
                if begin - offset >= size:
                    break
                offset = max(offset, behind)
            offsets[number] = offset
            alive.append((offset, offset + size, wiring.last.get(number, i)))
            end = max(end, offset + size)
    return offsets, end


class _Joined:
    """A stretch as a plan calls it: it binds itself to each shape that it meets, in each thread."""

    def __init__(self, wiring: _Wiring, run: Callable[[int], int]) -> None:
        self._wiring, self._native_run = wiring, run
        self._varying, kept = wiring.varying, wiring.parameters
        # for two and more it gives a tuple in one go: a net has hundreds of parameters
        one_by_one: Callable[[Any], Any] = lambda values: tuple(values[i] for i in kept)  # noqa: E731
        self._parameters_of = itemgetter(*kept) if len(kept) > 1 else one_by_one
        # of every thread, and bounded since shapes come with the data; None where nothing can be bound
        self._entries = PerThread()

    def __call__(self, *values: Any) -> Sequence[Any] | None:
        if THREAD.revision != LIBRARY.threads_revision and not THREAD.ready():
            return None
        key: tuple[Any, ...] = (THREAD.setting,)
        starts, misplaced = [], 0
        for i in self._varying:
            x = values[i]
            if x.dtype is not FLOAT:
                return None
            key += (x.shape, x.strides)
            start = address(x)
            starts.append(start)
            misplaced |= start
        entry = self._entries.get(key)
        if entry is None:
            return None if key in self._entries else self._bind(key, values)
        # the same objects as before, so no other memory
        if not all(map(is_, entry.parameters, self._parameters_of(values))):
            return self._bind(key, values)
        # primitives were chosen for elements at multiples of four bytes
        return None if misplaced & _MISALIGNED else self._run(key, entry, starts)

    def _bind(self, key: tuple[Any, ...], values: Sequence[Any]) -> Sequence[Any] | None:
        """Run the ops one by one for shapes or parameters that are new, and keep what that bound."""
        bound, results = _bound(self._wiring, values, self._parameters_of(values))
        self._entries.keep_some(key, bound, _SHAPES, _NEW_SHAPES)
        return results

    def _run(self, key: tuple[Any, ...], entry: _Run, starts: Sequence[int]) -> Sequence[Any] | None:
        table, results = entry.native.values, []
        for i, start in zip(self._varying, starts, strict=True):
            table[i] = start
        for i, take in entry.takes:
            y, table[i] = take()
            results.append(y)
        if entry.size > THREAD.state.capacity:
            THREAD.arena(entry.size)
        status = self._native_run(entry.native.pointer)
        if not status:
            return results
        # nothing that entered was written to, so the ops can run one by one: the one that fails again says why
        if status != NOT_ORDINARY:
            self._entries.keep(key, None)
            _LOG.warning("%s; its ops run one by one from now on", _failure(self._wiring, entry, status))
        return None


def _bound(wiring: _Wiring, values: Sequence[Any], parameters: Any) -> tuple[_Run | None, Sequence[Any] | None]:
    """Run the ops one by one, and bind their chains: what was bound, and the arrays that leave; None for either."""
    arrays: list[Any] = [*values]
    bounds, looks = [], []
    for i, (step, part) in enumerate(zip(wiring.steps, wiring.parts, strict=True)):
        inputs = [None if number is None else arrays[number] for number in wiring.inputs[i]]
        if inputs[0] is None or inputs[0].size < step.smallest:
            return None, None
        results = step.function(*wiring.arguments(i, arrays))
        if results is NotImplemented:
            return None, None
        arrays += results if isinstance(results, tuple) else [results]
        bound = part.bound(*inputs)
        if bound is None or bound.chain.native is None or len(arrays) != wiring.first[i] + step.results:
            return None, None
        looked = inputs[0] if part.looks_at == "input" else arrays[wiring.first[i]]
        if part.looks_at and memory_order(looked.shape, looked.strides) is None:
            return None, None
        bounds.append(bound)
        looks.append(looked.size)
    results = [arrays[number] for number in wiring.leaving]
    between = sum(a.nbytes for a in arrays[wiring.entering :])
    return (_Run(wiring, bounds, looks, parameters) if between <= _MOST else None), results


def _failure(wiring: _Wiring, entry: _Run, status: int) -> str:
    """Which op failed, for the log; the op itself raises when it fails again."""
    looks = [p.looks_at for p in wiring.parts]
    ops = [i for i, look in enumerate(looks) for _ in range(2 if look else 1)]
    step = wiring.steps[ops[entry.native.failed]]
    return f"op {step.op_type}, which writes {step.variable}: oneDNN: a primitive failed: {_c.STATUS[status]}"
