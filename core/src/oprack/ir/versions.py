"""The versions of variables: programs overwrite names in place, and a graph has a node for each write of a name."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping

from oprack.desc import BlockDesc, VarDesc
from oprack.ir.nodes import OpNode, VarNode
from oprack.types import EMPTY_VAR


class Versions:
    """The versions of the variables of a block, in the order of their writes.

    Args:
        block: The block.
        entering: Facts of the values that come from outside of the block, by name.
        elsewhere: (names that other blocks read, names that they write); versions of these are pinned.
    """

    def __init__(
        self,
        block: BlockDesc,
        entering: Mapping[str, VarDesc],
        elsewhere: tuple[Collection[str], Collection[str]],
    ) -> None:
        self._block, self._entering, self._elsewhere = block, entering, elsewhere
        self._by_name: dict[str, list[VarNode]] = {}

    def of(self, name: str) -> list[VarNode]:
        """The versions of a variable, in order; the first is number 0 when its value comes from outside."""
        return list(self._by_name.get(name, ()))

    def lists(self) -> Iterator[list[VarNode]]:
        """The versions of each variable."""
        return iter(self._by_name.values())

    def latest(self, name: str) -> VarNode | None:
        """The last version of a variable; None when nothing has read or written it."""
        versions = self._by_name.get(name)
        return versions[-1] if versions else None

    def read(self, name: str) -> VarNode:
        """The version that an op reads which comes next."""
        if name == EMPTY_VAR:
            # Absent arguments are no variable: each gets a node that nothing else shares.
            return VarNode(name, None)
        node = self.latest(name)
        if node is None:
            node = VarNode(name, self._block.find_var_recursive(name), fact=self._entering.get(name))
            self.add(node)
        return node

    def write(self, name: str, op: OpNode, fact: VarDesc | None) -> VarNode:
        """The new version that an op writes which comes next."""
        node = VarNode(name, self._block.find_var_recursive(name), op, fact)
        if name != EMPTY_VAR:
            self.add(node)
        return node

    def add(self, node: VarNode) -> None:
        """Add a version, and give it its number."""
        versions = self._by_name.setdefault(node.name, [])
        # Number 0 is kept for the value from outside, whether or not anything reads it.
        node.version = versions[-1].version + 1 if versions else int(node.producer is not None)
        node.pinned = any(node.name in names for names in self._elsewhere)
        versions.append(node)

    def remove(self, node: VarNode) -> None:
        """Take out a version that nothing reads or writes any more."""
        self._by_name[node.name].remove(node)

    def is_overwritten(self, node: VarNode, unchanged: Collection[OpNode]) -> bool:
        """Whether the name is written again, other than by ops that write back what they read (`unchanged`)."""
        versions = self._by_name.get(node.name)
        if not versions or versions[-1] is node:
            return False
        # Numbers stay when versions go, so the list is sorted and has gaps.
        place = bisect_right(versions, node.version, key=lambda v: v.version)
        return any(versions[i].producer not in unchanged for i in range(place, len(versions)))
