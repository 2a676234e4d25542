"""CUDA graphs of prepared plans: the work of a plan is recorded once per combination of shapes, then replayed.

Off until `use_graphs(True)`. A plan is recorded only if all its ops are in capturable.txt: their kernels draw no random
numbers on the host and copy nothing from it but constants, which stay on the device (oprack_cuda.testing.survey
generates the file from the conformance cases). A plan runs twice for new shapes before it is recorded, so that kernels
are compiled and constants copied. A plan that can't be recorded, for example because a kernel waits for a value,
continues to run op by op.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from oprack.cache import Cache
from oprack.kernel import Array
from oprack.python.interruption import let_interruptions_pass

if TYPE_CHECKING:
    from oprack.runtime import RunContext

FILE = Path(__file__).with_name("capturable.txt")
# How often a plan runs before it is recorded; how many recordings it keeps per thread.
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
    """The state of a plan for one combination of shapes.

    Attributes:
        runs: How often it has run op by op.
        last: Arguments of the last run.
        volatile: Positions of arguments that are new arrays in each run; they are copied into the recording's arrays.
        fixed: The arguments with which it was recorded.
        launch: Replays the recording; None before there is one.
        results: Results of the recording.
        failed: Why it can't be recorded; "" if it can.
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
        self.recordings = Cache(_RECORDINGS)


class Recorder(Protocol):
    """What a context needs for recording: `capture(function, arguments)` gives (launch, results)."""

    xp: Any

    def capture(
        self, function: Callable[..., list[Any]], arguments: Sequence[Any]
    ) -> tuple[Callable[[], None], list[Any]]: ...


class RecordedPlan:
    """The function of a plan on a context that records."""

    def __init__(self, function: Callable[..., Any], op_types: Collection[str], context: Recorder) -> None:
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
        # Arguments of other types, such as sparse rows, have no fixed memory.
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
        """The state of the calling thread's recordings: "recorded", "not yet", or why recording failed."""
        recordings = self._of_thread.recordings.values()
        return [r.failed or ("recorded" if r.launch is not None else "not yet") for r in recordings]

    def _signature(self, argument: Array | Sequence[Sequence[int]] | bool) -> Hashable:
        """The properties of an argument that a recording depends on; None for an argument that can't be recorded."""
        if isinstance(argument, self._context.xp.ndarray):
            return argument.shape, argument.dtype.str, argument.strides
        if isinstance(argument, bool):
            return argument
        if isinstance(argument, list):
            return tuple(map(tuple, argument))
        return None

    def _find(self, key: tuple[Hashable, ...]) -> _Recording:
        recordings = self._of_thread.recordings
        found: _Recording | None = recordings[key]
        if found is None:
            found = recordings[key] = _Recording()
        return found

    def _remember(self, recording: _Recording, arguments: Sequence[Any]) -> None:
        """Note which arguments changed identity since the last run, and so will probably change in the next."""
        for i, (old, new) in enumerate(zip(recording.last, arguments, strict=False)):
            if old is not new and isinstance(new, self._context.xp.ndarray):
                recording.volatile.add(i)
        recording.last = arguments

    def _fits(self, recording: _Recording, arguments: Sequence[Any]) -> bool:
        """Whether the arguments that are not copied are the very arrays of the recording."""
        array = self._context.xp.ndarray
        return all(
            i in recording.volatile or not isinstance(a, array) or a is f
            for i, (a, f) in enumerate(zip(arguments, recording.fixed, strict=True))
        )

    def _record(self, recording: _Recording, run: RunContext, arguments: Sequence[Any]) -> None:
        recording.fixed = [a.copy() if i in recording.volatile else a for i, a in enumerate(arguments)]
        # Release the arguments of the last run, whose memory is no longer needed.
        recording.last, recording.launch = (), None
        try:
            function = functools.partial(self.function, run)
            recording.launch, recording.results = self._context.capture(function, recording.fixed)
        except Exception as error:  # of CUDA, CuPy or a kernel; the plan may still run op by op
            let_interruptions_pass()
            recording.failed, recording.fixed = f"{type(error).__name__}: {error}", []

    def _repeat(self, recording: _Recording, arguments: Sequence[Any]) -> list[Any]:
        for i in recording.volatile:
            recording.fixed[i][...] = arguments[i]
        assert recording.launch is not None
        recording.launch()
        return [self._result(recording, r) for r in recording.results]

    def _result(self, recording: _Recording, result: Array) -> Array:
        """Copy a result, which the next launch will overwrite, unless it is a parameter that was updated in place."""
        if isinstance(result, self._context.xp.ndarray):
            changed = any(result is f for i, f in enumerate(recording.fixed) if i not in recording.volatile)
            return result if changed else result.copy()
        return [list(level) for level in result] if isinstance(result, list) else result
