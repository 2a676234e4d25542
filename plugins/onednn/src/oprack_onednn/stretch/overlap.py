"""Overlap: ops of a stretch whose shapes are new run while those behind them are prepared.

To prepare an op for new shapes is Python's work, which has one core. So what is prepared runs on another one, in
pieces: a piece is the ops that were prepared since the last one began, and begins when that has ended. The results that
later pieces read are arrays of their own. When all ops are prepared the thread helps with the piece under way, and runs
the rest itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from oprack.kernel import Array

from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.operands import address
from oprack_onednn.stretch.bound_stretch import BoundStretch
from oprack_onednn.stretch.contents import StretchContents
from oprack_onednn.threads.pool import POOL

# Seconds that the ops of a piece take at least on one core: to bind it, and to wake the other core, takes 0.2 ms.
_LEAST = 1e-3

End = Callable[["BegunStretch", Sequence[Any]], "Sequence[Any] | None"]
"""Returns the arrays that leave, for those that enter, or None where the steps have to run one by one."""


class BegunStretch:
    """The first run of a stretch for its shapes, from the time when its first op is prepared: a BegunSteps.

    Args:
        contents: Of no step yet, for arrays that enter.
        end: What is called when all steps are prepared.

    Attributes:
        contents: What is bound for the steps that are prepared.
        failed: Whether a step has to run on its own, or a piece could not begin.
    """

    def __init__(self, contents: StretchContents, end: End) -> None:
        self.contents, self.failed, self._end = contents, False, end
        self._overlaps = not POOL.problem and THREAD.max_threads > 1
        self._arrays: dict[int, Array] = dict(enumerate(contents.arrays))
        self._begun = 0  # steps
        self._chains: list[PrimitiveChain] = []  # of those that are ready and have not begun
        THREAD.prepared = None

    @property
    def ran(self) -> bool:
        """Whether pieces of it run already, or have run."""
        return self._begun > 0

    def advance(self) -> None:
        """Take note that the next step is prepared, and let it run if that is worthwhile."""
        prepared, THREAD.prepared = THREAD.prepared, None
        contents, chains = self.contents, self._chains
        if self.failed or len(contents.links) == len(contents.wiring.steps):  # others may be prepared behind it
            return
        if not contents.add(len(contents.links), prepared):
            self.failed = True
            return
        if not self._overlaps:
            return
        if prepared is not None:  # of a view there is none
            chains.append(prepared.link.chain.chain)
        if not chains or THREAD.background.busy:
            return
        if sum([chain.seconds for chain in chains]) >= _LEAST and all([chain.is_ready for chain in chains]):
            self._run(ahead=True)
            chains.clear()

    def __call__(self, *values: Any) -> Any:
        return self._end(self, values)

    def finish(self) -> bool:
        """Run what has not run yet, if pieces have; False where something failed, so that nothing counts."""
        status = self._run(ahead=False) if self.ran and not self.failed else 0
        return not (self.close() or status or self.failed)

    def leaving(self) -> list[Array]:
        """The arrays that leave, of pieces that have run."""
        contents = self.contents
        return [contents.array(number, self._arrays) for number in contents.wiring.leaving]

    def close(self) -> int:
        """Wait until nothing of it runs any more; returns what the first run that failed returned, or 0."""
        return THREAD.background.wait()

    def _run(self, ahead: bool) -> int:
        """Run the steps that are prepared and did not begin yet: ahead, in the background, or here, behind those there.

        Returns:
            What the run here returned, or 0.
        """
        contents, background, arrays, end = self.contents, THREAD.background, self._arrays, len(self.contents.links)
        if end == self._begun:
            return 0
        try:
            bound = BoundStretch(contents, background.state if ahead else THREAD.state, self._begun, end)
        except NotServedError:
            self.failed = True
            return 0
        if bound.size > THREAD.state.capacity:
            THREAD.arena(bound.size)
        reads = [arrays[k] for k in bound.reads]
        results = bound.enter(zip(bound.reads, map(address, reads), strict=True))
        status = 0
        if ahead:
            self.failed = not background.start(bound.native, bound, reads, results)
        else:
            background.settle()
            assert RUNNER.run is not None
            status = RUNNER.run(bound.native.pointer)
        arrays.update((k, y) for (k, _), y in zip(bound.takes, results, strict=True))
        for k in arrays.keys() - contents.roots_after(end):
            del arrays[k]  # its memory serves again when nothing runs that reads it
        self._begun = end
        return status
