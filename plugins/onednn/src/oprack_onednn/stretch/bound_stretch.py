"""A stretch bound to shapes: where its arrays lie, what leaves it, and the native call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.kernel import Array

from oprack_onednn.c.runner import NativeChain, NativeStretch, ThreadState
from oprack_onednn.chain.memory import Outlet
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.layout import NotServedError

if TYPE_CHECKING:
    from oprack_onednn.stretch.contents import StretchContents
    from oprack_onednn.stretch.wiring import Wiring

_ALIGN = 64
# Bytes of scratch memory, which a thread keeps, for all that lies between the ops of a stretch at one time: where there
# are more, a call of Python for each op is nothing beside its work.
_MOST = 1 << 26


class BoundStretch:
    """A stretch, or some of its steps, for arrays of certain shapes and strides, and for certain parameters.

    Args:
        contents: What is bound for each step.
        state: Of the thread that runs it; default: the calling one.
        begin: The first step.
        end: Behind the last one; default: all.

    Attributes:
        parameters: The arrays whose addresses are set.
        native: The chains.
        ops: The number of the op of each chain.
        takes: For each array that is allocated, its number and what allocates it.
        reads: The numbers of the arrays that are there before and that it reads.
        shifted: (number, number of the array that it lies in, offset) of views of what enters or leaves.
        results: Returns the arrays that leave, from those that entered and were allocated, by their numbers; None where
            exactly the allocated ones leave.
        size: Bytes of scratch memory.

    Raises:
        NotServedError: It would take too much scratch memory, or oneDNN refuses to compile a primitive.
    """

    __slots__ = ("_contents", "native", "ops", "parameters", "reads", "results", "shifted", "size", "takes")

    def __init__(
        self,
        contents: StretchContents,
        state: ThreadState | None = None,
        begin: int = 0,
        end: int | None = None,
    ) -> None:
        wiring = contents.wiring
        steps = range(begin, len(wiring.steps) if end is None else end)
        self._contents, self.parameters, self.ops = contents, contents.parameters, list[int]()
        chains, slots, scratch = list[NativeChain](), list[int](), 0
        outlets = dict[int, Outlet]()
        for i in steps:
            link = contents.links[i]
            if link is None:
                continue
            scratch = max(scratch, link.chain.size)
            first, inputs, joinable = wiring.first[i], wiring.inputs[i], wiring.joinables[i]
            outlets |= {first + k: outlet for k, outlet in enumerate(link.outlets)}
            assert link.chain.native is not None
            parts = [(link.chain.native, [*(inputs[k] for k in link.given), *range(first, first + len(link.outlets))])]
            if joinable is not None and contents.looks[i]:
                look = NativeChain(1, looks=[(0, contents.looks[i])])
                before = joinable.looks_at == "input"
                parts.insert(0 if before else 1, (look, [inputs[0] if before else first]))
            for chain, numbers in parts:
                chains.append(chain)
                slots += [n for n in numbers if n is not None]
                self.ops.append(i)
        kept = sorted(contents.roots_after(steps.stop) & outlets.keys())
        self.takes = [(number, outlets[number].take) for number in kept]
        is_plain = kept == list(wiring.leaving)
        self.results: Callable[[Mapping[int, Array]], list[Array]] | None = None if is_plain else self._results(wiring)
        between = {number: outlet.nbytes for number, outlet in outlets.items() if number not in kept}
        offsets, self.size = _placed(between, contents, steps, -(-scratch // _ALIGN) * _ALIGN)
        if self.size > _MOST:
            raise NotServedError(f"{self.size} bytes of scratch memory; a stretch takes at most {_MOST}")
        # A view that starts where its source does needs no address of its own.
        self.shifted = list[tuple[int, int, int]]()
        for number in sorted({n for n in slots if n in contents.views}):
            root, offset = contents.root(number)
            if offset and root in offsets:
                offsets[number] = offsets[root] + offset
            elif offset:
                self.shifted.append((number, root, offset))
        self.reads = sorted({contents.root(n)[0] for n in slots} - outlets.keys())
        slots = [contents.root(n)[0] if not contents.root(n)[1] else n for n in slots]
        self.native = NativeStretch(state or THREAD.state, chains, slots, wiring.count, list(offsets.items()))

    def enter(self, starts: Iterable[tuple[int, int]]) -> list[Array]:
        """Make it ready to run for arrays that enter; returns those that are allocated.

        Args:
            starts: The numbers of the arrays that enter and vary, each with its address.
        """
        table, results = self.native.values, list[Array]()
        for i, start in starts:
            table[i] = start
        for i, take in self.takes:
            y, table[i] = take()
            results.append(y)
        for i, root, offset in self.shifted:
            table[i] = table[root] + offset
        return results

    def leave(self, values: Sequence[Any], results: list[Array]) -> list[Array]:
        """The arrays that leave, of those that entered and of what `enter` returned."""
        if self.results is None:
            return results
        return self.results(dict(enumerate(values)) | {i: y for (i, _), y in zip(self.takes, results, strict=True)})

    def _results(self, wiring: Wiring) -> Callable[[Mapping[int, Array]], list[Array]]:
        contents, leaving = self._contents, wiring.leaving
        return lambda arrays: [contents.array(number, arrays) for number in leaving]


def _placed(sizes: dict[int, int], contents: StretchContents, steps: range, start: int) -> tuple[dict[int, int], int]:
    """The offset of each array between the steps, behind `start`, and where the last of them ends.

    An array gets the first gap among those that are read at the same time or later.
    """
    wiring = contents.wiring
    last = {contents.root(n)[0]: i for i in steps for n in wiring.inputs[i] if n is not None}
    offsets: dict[int, int] = {}
    alive: list[tuple[int, int, int]] = []  # (offset, end, last step that reads it)
    end = start
    for i in steps:
        first = wiring.first[i]
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
            alive.append((offset, offset + size, last.get(number, i)))
            end = max(end, offset + size)
    return offsets, end
