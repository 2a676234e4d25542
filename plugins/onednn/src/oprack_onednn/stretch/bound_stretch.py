"""A stretch bound to shapes: where its arrays lie, what leaves it, and the native call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.kernel import Array
from oprack.python.records import dataclass

from oprack_onednn.c.runner import NativeChain, NativeStretch, ThreadState
from oprack_onednn.chain.memory import Outlet
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.stretch.joinable import Link
from oprack_onednn.stretch.views import View

if TYPE_CHECKING:
    from oprack_onednn.stretch.wiring import Wiring

_ALIGN = 64


@dataclass(frozen=True)
class StretchContents:
    """What was bound for the ops of a stretch.

    Attributes:
        links: The chain of each op; None of one whose results are all views.
        looks: For each op how many elements are searched for NaN and infinities; 0 where none are.
        views: The results that lie in other arrays, by their numbers.
        empty: The results without elements, which are the same in every run.
    """

    links: list[Link | None]
    looks: list[int]
    views: dict[int, View]
    empty: dict[int, Array]

    def root(self, number: int) -> tuple[int, int]:
        """The number of the array that an array lies in, and the offset there in bytes."""
        offset = 0
        while number in self.views:
            offset += self.views[number].offset
            number = self.views[number].source
        return number, offset

    def array(self, number: int, arrays: Mapping[int, Array]) -> Array:
        """The array of a number: one of `arrays`, or a view of one of them."""
        if number in self.empty:
            return self.empty[number]
        view = self.views.get(number)
        return arrays[number] if view is None else view.make(self.array(view.source, arrays))


class BoundStretch:
    """A stretch for arrays of certain shapes and strides, and for certain parameters.

    Args:
        wiring: The steps.
        contents: What was bound for each.
        parameters: As below.
        state: Of the thread that runs it; default: the calling one.

    Attributes:
        parameters: The arrays whose addresses are set.
        native: The chains.
        ops: The number of the op of each chain.
        takes: For each array that is allocated, its number and what allocates it.
        shifted: (number, number of the array that it lies in, offset) of views of what enters or leaves.
        results: Returns the arrays that leave, from those that entered and were allocated, by their numbers; None where
            exactly the allocated ones leave.
        size: Bytes of scratch memory.
    """

    __slots__ = ("_contents", "native", "ops", "parameters", "results", "shifted", "size", "takes")

    def __init__(
        self, wiring: Wiring, contents: StretchContents, parameters: Any, state: ThreadState | None = None
    ) -> None:
        self._contents, self.parameters, self.ops = contents, parameters, list[int]()
        chains, slots = list[NativeChain](), list[int]()
        outlets = dict[int, Outlet]()
        for i, link in enumerate(contents.links):
            if link is None:
                continue
            first, inputs, joinable = wiring.first[i], wiring.inputs[i], wiring.joinables[i]
            outlets |= {first + k: outlet for k, outlet in enumerate(link.outlets)}
            assert link.chain.native is not None
            parts = [(link.chain.native, [*(inputs[k] for k in link.given), *range(first, first + len(link.outlets))])]
            if joinable is not None and joinable.looks_at:
                look = NativeChain(1, looks=[(0, contents.looks[i])])
                before = joinable.looks_at == "input"
                parts.insert(0 if before else 1, (look, [inputs[0] if before else first]))
            for chain, numbers in parts:
                chains.append(chain)
                slots += [n for n in numbers if n is not None]
                self.ops.append(i)
        kept = sorted({contents.root(n)[0] for n in wiring.leaving} & outlets.keys())
        self.takes = [(number, outlets[number].take) for number in kept]
        is_plain = kept == list(wiring.leaving)
        self.results: Callable[[Mapping[int, Array]], list[Array]] | None = None if is_plain else self._results(wiring)
        scratch = max(-(-b.chain.size // _ALIGN) * _ALIGN for b in contents.links if b is not None)
        between = {number: outlet.nbytes for number, outlet in outlets.items() if number not in kept}
        offsets, self.size = _placed(between, wiring, contents, scratch)
        # A view that starts where its source does needs no address of its own.
        self.shifted = list[tuple[int, int, int]]()
        for number in sorted({n for n in slots if n in contents.views}):
            root, offset = contents.root(number)
            if offset and root in offsets:
                offsets[number] = offsets[root] + offset
            elif offset:
                self.shifted.append((number, root, offset))
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


def _placed(sizes: dict[int, int], wiring: Wiring, contents: StretchContents, start: int) -> tuple[dict[int, int], int]:
    """The offset of each array between the ops, behind `start`, and where the last of them ends.

    An array gets the first gap among those that are read at the same time or later.
    """
    last = {contents.root(n)[0]: i for i, numbers in enumerate(wiring.inputs) for n in numbers if n is not None}
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
            alive.append((offset, offset + size, last.get(number, i)))
            end = max(end, offset + size)
    return offsets, end
