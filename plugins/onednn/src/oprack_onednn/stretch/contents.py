"""What is known of the ops of a stretch for certain shapes: the chain of each, and where its results lie.

It is found op by op, each by the arrays that those before it give; nothing is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.kernel import Array

from oprack_onednn.chain.memory import memory_order
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.stretch.joinable import Link, Prepared
from oprack_onednn.stretch.views import View, copied, view_of

if TYPE_CHECKING:
    from oprack_onednn.stretch.wiring import Wiring


class StretchContents:
    """The chains of the first steps of a stretch, for arrays of certain shapes and strides.

    Args:
        wiring: The steps.
        values: The arrays that enter.
        parameters: Those of them that stay, and whose addresses chains have.

    Attributes:
        arrays: Those that enter, and arrays like the results so far, whose elements nobody computed; not kept.
        links: What is bound for each step; None of one whose results are all views.
        looks: For each step how many elements are searched for NaN and infinities; 0 where none are.
        views: The results that lie in other arrays, by their numbers.
        empty: The results without elements, which are the same in every run.
    """

    def __init__(self, wiring: Wiring, values: Sequence[Any], parameters: Sequence[Any]) -> None:
        self.wiring, self.arrays, self.parameters = wiring, [*values], parameters
        self.links: list[Link | None] = []
        self.looks: list[int] = []
        self.views: dict[int, View] = {}
        self.empty: dict[int, Array] = {}

    def add(self, i: int, prepared: Prepared | None = None) -> bool:
        """Add step `i`; False where it has to run on its own.

        Args:
            i: Its number, behind that of the last one.
            prepared: What was bound for the step just now, where it was.
        """
        wiring, arrays = self.wiring, self.arrays
        inputs = [None if number is None else arrays[number] for number in wiring.inputs[i]]
        x, step, joinable = inputs[0], wiring.steps[i], wiring.joinables[i]
        if x is None:
            return False
        if joinable is None:
            return self._add_views(i, x)
        if x.size < step.smallest and not joinable.is_exact:
            return False
        link = joinable.link(*inputs) if prepared is None else prepared.link
        if link is None or len(link.outlets) != step.results or (prepared is None and not _is_native(link)):
            return False
        made = [outlet.blank() for outlet in link.outlets] if prepared is None else prepared.results
        looked = x if joinable.looks_at == "input" else made[0]
        looks = bool(joinable.looks_at) and not link.is_faithful
        if looks and memory_order(looked.shape, looked.strides) is None:
            return False
        self.links.append(link)
        self.looks.append(looked.size if looks else 0)
        arrays += made
        return True

    def _add_views(self, i: int, x: Any) -> bool:
        """Note where the results of view number `i` lie; False where they may be anything."""
        wiring, link = self.wiring, None
        source, made = wiring.inputs[i][0], wiring.call(i, self.arrays)
        if made is None:
            return False
        assert source is not None  # x is there
        for k, y in enumerate(made):
            number = wiring.first[i] + k
            if not y.size:
                self.empty[number] = y
                continue
            view = view_of(x, y, source, wiring.maker(i, k))
            if view is not None:
                self.views[number] = view
                continue
            copy = None if k else copied(wiring.steps[i].op_type, x, y)
            if copy is None:
                return False
            link, made[k] = copy
        self.links.append(link)
        self.looks.append(0)
        self.arrays += made
        return True

    def root(self, number: int) -> tuple[int, int]:
        """The number of the array that an array lies in, and the offset there in bytes."""
        offset = 0
        while number in self.views:
            offset += self.views[number].offset
            number = self.views[number].source
        return number, offset

    def roots_after(self, end: int) -> set[int]:
        """The numbers of the arrays so far in which those lie that are read by steps from `end` on, or leave."""
        wiring = self.wiring
        return {self.root(n)[0] for n in range(wiring.count_before(end)) if wiring.last[n] >= end}

    def array(self, number: int, arrays: Mapping[int, Array]) -> Array:
        """The array of a number: one of `arrays`, or a view of one of them."""
        if number in self.empty:
            return self.empty[number]
        view = self.views.get(number)
        return arrays[number] if view is None else view.make(self.array(view.source, arrays))


def _is_native(link: Link) -> bool:
    """Whether the compiled runner can run a chain."""
    try:
        return link.chain.native is not None
    except NotServedError:  # oneDNN refuses to compile a primitive that it had promised
        return False
