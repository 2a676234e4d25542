"""Global tensors that are split by sequences: each rank has whole sequences, so its rows are not an even part."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oprack.eager_tensor import Tensor
from oprack.errors import CollectiveError, UnimplementedError
from oprack.op.sbp import split
from oprack.parallel.layouts.boxing import box
from oprack.parallel.layouts.layout import Layout, balanced
from oprack.parallel.sparse_rows import box_rows
from oprack.tensor import SelectedRows

LoD = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Rows:
    """How the rows of a global tensor lie on ranks.

    Attributes:
        cuts: The row with which each rank's part begins, and at last the number of rows.
        lod: The offsets of the whole tensor; () without LoD.
    """

    cuts: tuple[int, ...]
    lod: tuple[tuple[int, ...], ...] = ()

    def part(self, index: int) -> list[list[int]]:
        """The offsets of one rank's part."""
        if not self.lod:
            return []
        start, stop = balanced(len(self.lod[0]) - 1, len(self.cuts) - 1, index)
        found = []
        for level in self.lod:
            taken = level[start : stop + 1]
            found.append([x - taken[0] for x in taken])
            start, stop = taken[0], taken[-1]
        return found


def rows_of(lod: LoD, ranks: int) -> Rows:
    """Whole sequences of the outermost level, split as evenly as can be.

    Args:
        lod: The offsets of the whole tensor.
        ranks: How many ranks share it.

    Returns:
        Where the rows of each begin.
    """
    count = len(lod[0]) - 1
    at = [balanced(count, ranks, r)[0] for r in range(ranks)] + [count]
    for level in lod:
        at = [level[k] for k in at]
    return Rows(tuple(at), tuple(map(tuple, lod)))


def joined(lods: Sequence[LoD]) -> list[list[int]]:
    """The offsets of tensors that follow one another."""
    found = []
    for levels in zip(*lods, strict=True):
        offsets = [0]
        for level in levels:
            last = offsets[-1]
            offsets += [last + x for x in level[1:]]
        found.append(offsets)
    return found


def whole_lod(x: Tensor) -> LoD:
    """The offsets of a global tensor, those of all ranks."""
    rows: Rows | None = x._rows
    lod: LoD = x._lod if rows is None else rows.lod
    return lod


def split_axis(layout: Layout) -> int | None:
    """The axis of the placement along which rows are split; None when they are not.

    Raises UnimplementedError where several axes split them.
    """
    axes = [k for k, s in enumerate(layout.sbps) if s == split(0)]
    if len(axes) > 1:
        raise UnimplementedError(
            f"{layout!r} splits sequences along {len(axes)} axes; expected one axis with split(0), and broadcast along "
            "the others"
        )
    return axes[0] if axes else None


def box_rows_of(
    x: Any, shape: Sequence[int], source: Layout, target: Layout, before: Rows | None, after: Rows | None
) -> Any:
    """This rank's part in another layout, where rows are not split evenly before, after or both; collective.

    Args:
        x: This rank's part, an array.
        shape: The logical shape.
        source: The layout that `x` has.
        target: The layout that is wanted.
        before: How the rows lie in `source`; None: they are split evenly, or whole.
        after: The same for `target`.

    Returns:
        The part in `target`.
    """
    source, target = source.even, target.even
    same = before is after or (before is not None and after is not None and before.cuts == after.cuts)
    if source is target and (same or split_axis(source) is None):
        return x
    axis = split_axis(source) if before is not None else None
    if axis is not None and before is not None:
        counts = [b - a for a, b in itertools.pairwise(before.cuts)]
        x = source.placement.group(axis).all_gather(x, counts)
        source = source.replaced(axis, type(source.sbps[axis])("B"))
    axis = split_axis(target) if after is not None else None
    if axis is None or after is None:
        return box_rows(x, shape, source, target) if isinstance(x, SelectedRows) else box(x, shape, source, target)
    x = box(x, shape, source, target.replaced(axis, type(target.sbps[axis])("B")))
    at = target.placement.coords[axis]
    return x[after.cuts[at] : after.cuts[at + 1]]


def rows_in(x: Tensor, target: Layout) -> Rows | None:
    """How the rows of a global tensor lie in a layout: by its sequences; None where they are whole or evenly split."""
    lod = whole_lod(x)
    axis = split_axis(target) if lod else None
    return None if axis is None else rows_of(lod, target.placement.shape[axis])


def gathered_rows(x: Tensor, target: Layout) -> Rows:
    """How the rows of a tensor lie of which each rank brings whole sequences; collective.

    Args:
        x: This rank's sequences.
        target: The layout, which splits rows along one axis.

    Returns:
        How they lie.

    Raises:
        CollectiveError: The ranks do not bring even parts of the sequences.
    """
    axis = split_axis(target)
    assert axis is not None
    lods = target.placement.group(axis).gather_facts(x.lod)
    if len({len(lod) for lod in lods}) > 1:
        raise CollectiveError(f"to_global: ranks bring LoD of {[len(lod) for lod in lods]} levels; expected the same")
    counts = [len(lod[0]) - 1 for lod in lods]
    wanted = [b - a for a, b in (balanced(sum(counts), len(counts), r) for r in range(len(counts)))]
    if counts != wanted:
        raise CollectiveError(
            f"to_global: ranks bring {counts} sequences; expected {wanted}, an even split of whole sequences"
        )
    return rows_of(joined(lods), len(counts))
