"""Which results of a captured function lie on the memory of its arguments, or of each other, as in eager calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from oprack.desc import BlockDesc
from oprack.packs.manager import default_manager
from oprack.tensor import Place


class Sharing:
    """What lies on whose memory.

    In an eager call the results of kernels that give views lie on the memory of their first input, and those of
    `x[...]` on memory of their own.

    Args:
        block: The ops of the captured function.
        place: Where they run.
        given: Names of its arguments and of captured tensors.
        made: Names of its results that are neither.
        owned: Names of variables that in an eager call have memory of their own, although they may be views.

    Attributes:
        shares: For a result the name of what it shares memory with: what is given, or a result before it.
        copies: Results that have to be copied if they are views.
    """

    def __init__(
        self, block: BlockDesc, place: Place, given: Collection[str], made: Sequence[str], owned: Collection[str]
    ) -> None:
        sources = _sources(block, place)
        self._roots = {n: _root(n, sources, owned) for n in sources}
        lies_on = {n: _root(n, sources, ()) for n in sources}
        self.shares: dict[str, str] = {}
        first = {n: n for n in given}
        for name in made:
            root = self.root(name)
            if root in first:
                self.shares[name] = first[root]
            else:
                first[root] = name
        self.copies = {n for n in made if lies_on.get(n, n) != self.root(n)}

    def root(self, name: str) -> str:
        """The variable whose memory a variable is on."""
        return self._roots.get(name, name)


def _root(name: str, sources: Mapping[str, str], owned: Collection[str]) -> str:
    seen = {name}
    while name in sources and name not in owned and sources[name] not in seen:
        name = sources[name]
        seen.add(name)
    return name


def _sources(block: BlockDesc, place: Place) -> dict[str, str]:
    """For each variable that a kernel may give as a view of another one, that other one."""
    manager, found = default_manager(), dict[str, str]()
    for op in block.ops:
        slots = manager.kernel_map(op.type, place.kind).viewed
        given = op.inputs.get(slots[0], ()) if slots else ()
        for name in op.output_arg_names():
            if given and name != given[0]:
                found[name] = given[0]
    return found
