"""Overlap: ops of a stretch whose shapes are new run while those behind them are prepared.

To prepare an op for new shapes is Python's work, which has one core. So what is prepared runs on another one, in
pieces: a piece is the ops that were prepared since the last one began, and begins when that has ended. The results that
later pieces read are arrays of their own. When all ops are prepared the thread helps with the piece under way, and runs
the rest itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.python.implementation import without_collecting

from oprack_onednn.c.runner import RUNNER, ThreadState
from oprack_onednn.chain.thread import THREAD, Prepared
from oprack_onednn.dnnl.operands import address
from oprack_onednn.stretch.bound_stretch import BoundStretch
from oprack_onednn.stretch.wiring import Wiring

# Seconds that the ops of a piece take at least on one core: to bind it, and to wake the other core, takes 0.2 ms.
_LEAST = 1e-3

Bind = Callable[[Wiring, Sequence[Any], ThreadState], "BoundStretch | None"]
"""Binds all ops of a wiring for arrays that enter, to run in some thread; None where one of them can't be bound."""


class Overlap:
    """The first run of a stretch for its shapes: a BegunSteps.

    Args:
        wiring: The steps.
        values: The arrays that enter, which have the dtypes and places that the stretch takes.
        bind: Binds a piece.
        whole: The stretch, for where a piece can't be bound or does not run to its end; it is told whether one could.
    """

    def __init__(
        self, wiring: Wiring, values: Sequence[Any], bind: Bind, whole: Callable[[bool, Sequence[Any]], Any]
    ) -> None:
        self._wiring, self._bind, self._whole = wiring, bind, whole
        self._arrays: list[Any] = [*values, *[None] * (wiring.count - wiring.entering)]
        self._begun = self._ready = 0  # steps
        self._chains: list[Prepared] = []  # of those that are ready and have not begun
        self._failed = False
        THREAD.prepared = None

    def advance(self) -> None:
        """Take note that the next step is prepared, and let it run if that is worthwhile."""
        chain, background, chains = THREAD.prepared, THREAD.background, self._chains
        if self._ready < len(self._wiring.steps):  # others may be prepared behind the stretch
            self._ready += 1
            if chain is not None:  # of a view there is none
                chains.append(chain)
        THREAD.prepared = None
        if not chains or self._failed or background.busy:
            return
        if sum([chain.seconds for chain in chains]) >= _LEAST and all([chain.is_ready for chain in chains]):
            self._run(self._ready, ahead=True)
            chains.clear()

    def __call__(self, *values: Any) -> Any:
        """Run what has not run yet; returns the arrays that leave, or None where the steps have to run one by one."""
        results = without_collecting(self._finish) if self._begun else None
        return self._whole(not self._failed, values) if results is None else results

    def _finish(self) -> list[Any] | None:
        wiring, status = self._wiring, 0
        if self._begun < len(wiring.steps) and not self._failed:
            status = self._run(len(wiring.steps), ahead=False)
        return None if self.close() or status or self._failed else [self._arrays[k] for k in wiring.leaving]

    def close(self) -> int:
        """Wait until nothing of it runs any more; returns what the first run that failed returned, or 0."""
        return THREAD.background.wait()

    def _run(self, end: int, ahead: bool) -> int:
        """Run the steps before `end` that did not begin yet: ahead, in the background, or here, behind what runs there.

        Returns:
            What the run here returned, or 0.
        """
        background, arrays = THREAD.background, self._arrays
        piece = self._wiring.sub_stretch(self._begun, end)
        values = [arrays[k] for k in piece.taken]
        bound = self._bind(piece.wiring, values, background.state if ahead else THREAD.state)
        if bound is None:
            self._failed = True
            return 0
        if bound.size > THREAD.state.capacity:
            THREAD.arena(bound.size)
        results = bound.enter([(i, address(x)) for i, x in enumerate(values) if i not in piece.wiring.parameters])
        if not ahead:
            background.settle()
            assert RUNNER.run is not None
            status = RUNNER.run(bound.native.pointer)
        else:
            status, self._failed = 0, not background.start(bound.native, bound, values, results)
        for k, y in zip(piece.left, bound.leave(values, results), strict=True):
            arrays[k] = y
        for k in piece.dead:
            arrays[k] = None  # its memory serves again when nothing runs that reads it
        self._begun = end
        return status
