"""SelectedRows over ranks: gradients of embeddings, which are sums of the rows that each rank has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.parallel.communicator import Communicator
from oprack.parallel.layouts.boxing import box
from oprack.parallel.layouts.layout import Layout
from oprack.tensor import SelectedRows


def gather_rows(rows: SelectedRows, group: Communicator) -> SelectedRows:
    """The rows of all ranks one after the other, which stand for their sum; collective."""
    ids = np.asarray(rows.rows, np.int64)
    counts = group.gather_facts(int(ids.shape[0]))
    value = group.all_gather(rows.value, counts)
    return SelectedRows(group.all_gather(ids, counts), value, rows.height)


def box_rows(rows: SelectedRows, shape: Sequence[int], source: Layout, target: Layout) -> Any:
    """SelectedRows in another layout. Where only sums are taken, they stay sparse; else they become a dense array."""
    now: Any = rows
    layout = source
    for axis, (s, t) in enumerate(zip(source.sbps, target.sbps, strict=True)):
        if s.kind == "P" and t.kind == "B":
            now = gather_rows(now, source.placement.group(axis))
            layout = layout.replaced(axis, t)
    return now if layout is target else box(now.to_dense(), shape, layout, target)
