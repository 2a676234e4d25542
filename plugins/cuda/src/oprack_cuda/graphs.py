"""CUDA graphs of prepared plans: work that was enqueued once for some shapes is recorded, then launched as a whole.

Off until `use_graphs(True)`. Only plans are recorded whose every op is in capturable.txt: its kernels copy nothing from
the host but constants, which are kept, and draw no numbers there (oprack_cuda.testing.survey writes that file from the
conformance cases). A plan runs twice for new shapes before it is recorded, so that kernels are compiled and constants
copied; what fails to record, such as a kernel that waits for a value, goes on running op by op.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.kernel import Array

if TYPE_CHECKING:
    from oprack.runtime import RunContext

    from oprack_cuda.context import CUDADeviceContext

FILE = Path(__file__).with_name("capturable.txt")
# Runs before a recording; recordings that a plan keeps per thread
_WARM_UP, _RECORDINGS = 2, 8


class _Setting:
    enabled = False


def use_graphs(enabled: bool) -> None:
    """Record plans whose shapes come back, from now on."""
    _Setting.enabled = bool(enabled)


def graphs_used() -> bool:
    return _Setting.enabled


@functools.cache
def capturable_ops() -> frozenset[str]:
    """Ops that may be recorded."""
    return frozenset(line for line in FILE.read_text("utf-8").split() if line)


@dataclass
class _Recording:
    """What is known of a plan for some shapes. runs: op by op so far. last: arguments of the last run.

    volatile: arguments that are other arrays in every run; they are copied into arrays of the recording. fixed: the
    arguments it was recorded with. launch: repeats it; None before. results: of the recording. failed: why it can't be
    recorded.
    """

    runs: int = 0
    last: Sequence[Any] = ()
    volatile: set[int] = field(default_factory=set)
    fixed: list[Any] = field(default_factory=list)
    launch: Callable[[], None] | None = None
    results: list[Any] = field(default_factory=list)
    failed: str = ""


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.recordings: OrderedDict[Any, _Recording] = OrderedDict()


class RecordedPlan:
    """The function of a plan on a context that has `capture(function, arguments)`, which gives (launch, results)."""

    def __init__(self, function: Callable[..., Any], op_types: Collection[str], context: CUDADeviceContext) -> None:
        self.function, self._context = function, context
        self._capturable = capturable_ops().issuperset(op_types)
        # A recording belongs to a stream, and each thread has one of its own.
        self._of_thread = _OfThread()

    def __call__(
        self, run: RunContext, *arguments: Array | Sequence[Sequence[int]] | bool
    ) -> list[Array | list[list[int]]]:
        if not (_Setting.enabled and self._capturable):
            return self.function(run, *arguments)
        key = tuple(map(self._signature, arguments))
        # Arguments of other kinds, such as sparse rows, have no fixed memory.
        if None in key:
            return self.function(run, *arguments)
        recording = self._find(key)
        if recording.launch is not None and self._fits(recording, arguments):
            return self._repeat(recording, arguments)
        recording.runs += 1
        if recording.failed or recording.runs <= _WARM_UP:
            self._remember(recording, arguments)
            return self.function(run, *arguments)
        self._remember(recording, arguments)
        self._record(recording, run, arguments)
        return self.function(run, *arguments) if recording.failed else self._repeat(recording, arguments)

    def recordings(self) -> list[str]:
        """Of the calling thread: "recorded", "not yet", or why not."""
        found = self._of_thread.recordings.values()
        return [r.failed or ("recorded" if r.launch is not None else "not yet") for r in found]

    def _signature(self, argument: Array | bool) -> bool | tuple[tuple[int, ...], str, tuple[int, ...]]:
        """What a recording is good for; None when it can't have such an argument."""
        if isinstance(argument, self._context.xp.ndarray):
            return argument.shape, argument.dtype.str, argument.strides
        if isinstance(argument, bool):
            return argument
        if isinstance(argument, list):
            return tuple(map(tuple, argument))
        return None

    def _find(self, key: tuple[bool | tuple[tuple[int, ...], str, tuple[int, ...]], ...]) -> _Recording:
        known = self._of_thread.recordings
        if key not in known:
            known[key] = _Recording()
            if len(known) > _RECORDINGS:
                known.popitem(last=False)
        known.move_to_end(key)
        return known[key]

    def _remember(self, recording: _Recording, arguments: Sequence[Any]) -> None:
        """Arrays that were others in the run before will be so in the next."""
        for i, (old, new) in enumerate(zip(recording.last, arguments, strict=False)):
            if old is not new and isinstance(new, self._context.xp.ndarray):
                recording.volatile.add(i)
        recording.last = arguments

    def _fits(self, recording: _Recording, arguments: Sequence[Any]) -> bool:
        """Whether arguments that are no copies are those of the recording."""
        array = self._context.xp.ndarray
        return all(
            i in recording.volatile or not isinstance(a, array) or a is f
            for i, (a, f) in enumerate(zip(arguments, recording.fixed, strict=True))
        )

    def _record(self, recording: _Recording, run: RunContext, arguments: Sequence[Any]) -> None:
        recording.fixed = [a.copy() if i in recording.volatile else a for i, a in enumerate(arguments)]
        # The arguments of the last run would keep their memory for nothing.
        recording.last, recording.launch = (), None
        try:
            function = functools.partial(self.function, run)
            recording.launch, recording.results = self._context.capture(function, recording.fixed)
        except Exception as error:  # what CUDA, CuPy or a kernel says; op by op the plan may still run
            recording.failed, recording.fixed = f"{type(error).__name__}: {error}", []

    def _repeat(self, recording: _Recording, arguments: Sequence[Any]) -> list[Any]:
        for i in recording.volatile:
            recording.fixed[i][...] = arguments[i]
        assert recording.launch is not None
        recording.launch()
        return [self._result(recording, r) for r in recording.results]

    def _result(self, recording: _Recording, result: Array) -> Array:
        """A parameter that was changed in place is itself; the next launch writes over all other arrays."""
        if isinstance(result, self._context.xp.ndarray):
            changed = any(result is f for i, f in enumerate(recording.fixed) if i not in recording.volatile)
            return result if changed else result.copy()
        return [list(level) for level in result] if isinstance(result, list) else result
