"""Which value of a variable the gradient ops find: ops that overwrite it, and gradient ops that bring values back."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from oprack.autodiff.path import outputs_of
from oprack.desc import BlockDesc, OpDesc


def written_by(op: OpDesc, block: BlockDesc) -> set[str]:
    """Variables of `block` or outer ones that an op writes, by its sub-blocks as well."""
    names = set(outputs_of(op))
    for index in op.sub_blocks():
        inner = block.program.blocks[index]
        for o in inner.ops:
            names |= written_by(o, inner) - inner.vars.keys()
    return names


class Versions:
    """What variables hold as the backward pass of a block goes on.

    At its start they hold what the forward pass left, that is, the last version. A gradient op that restores a variable
    takes one write back.
    """

    def __init__(self, block: BlockDesc, ops: Sequence[OpDesc]) -> None:
        self.ops = ops
        self.writers: dict[str, list[int]] = {}
        for i, op in enumerate(ops):
            for name in written_by(op, block):
                self.writers.setdefault(name, []).append(i)
        self._left = {n: list(writers) for n, writers in self.writers.items()}
        self.from_start: set[str] = set()
        """Variables of which each round of the block kept the value that it found."""
        self._outer: set[str] = set()

    def repeats(self, outer: Collection[str], from_start: Collection[str]) -> None:
        """The block runs in rounds. outer: variables that all rounds share, so that later ones overwrite them."""
        self.from_start, self._outer = set(from_start), set(outer) - set(from_start)

    def overwriter(self, name: str, index: int, after: bool) -> int | None:
        """Index of the last op that keeps a gradient op of op `index` from finding its value of a variable, or None.

        after: the value that the op wrote is asked for, rather than the one that it read.
        """
        first = index + after
        if name in self.from_start:
            return next((i for i in reversed(self.writers[name]) if i < first), None)
        left = self._left.get(name, ())
        if left and (left[-1] >= first or name in self._outer):
            return left[-1]
        return None

    def is_last(self, name: str, index: int) -> bool:
        """Whether a variable holds what op `index` wrote."""
        return self._left.get(name, [])[-1:] == [index]

    def restored(self, name: str, index: int) -> None:
        """Op `index` is undone for this variable, and so are all later ones."""
        self._left[name] = [i for i in self._left.get(name, ()) if i < index]

    def undone(self) -> dict[str, bool]:
        """Variables of which some write was taken back; whether all were, so that the block left no trace in them."""
        return {n: not left for n, left in self._left.items() if len(left) < len(self.writers[n])}
