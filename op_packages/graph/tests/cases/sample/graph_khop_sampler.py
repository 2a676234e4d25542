"""Cases of graph_khop_sampler that do not depend on the draw: all neighbours, within one hop and more."""

from __future__ import annotations

import numpy as np
from oprack.testing import OpCase

from ._graph import EDGES, ROW, STARTS


def khop(sizes: list[int], nodes: list[int], edges: list[tuple[int, int, int]]) -> OpCase:
    """From nodes 3 and 1; `edges`: (begin, end, number), whose ends the op numbers by their places in `nodes`."""
    outputs = {
        "Out_Src": [[nodes.index(begin)] for begin, _, _ in edges],
        "Out_Dst": [[nodes.index(end)] for _, end, _ in edges],
        "Sample_Index": nodes,
        "Reindex_X": [0, 1, 0],
        "Out_Eids": [number for _, _, number in edges],
    }
    return OpCase(
        "graph_khop_sampler",
        {"Row": ROW, "Eids": EDGES, "Col_Ptr": STARTS, "X": np.array([3, 1, 3])},
        {"sample_sizes": sizes, "return_eids": True},
        {
            slot: np.array(value, np.int64).reshape(-1, 1)
            if slot in ("Out_Src", "Out_Dst")
            else np.array(value, np.int64)
            for slot, value in outputs.items()
        },
        name=f"at most {sizes}",
    )


NEAR = [(2, 3, 14), (0, 3, 15), (0, 1, 13)]
# the second hop goes on from 0 and from 2, which has no neighbours; the third finds nobody new
FAR = [*NEAR, (1, 0, 10), (2, 0, 11), (3, 0, 12)]
CASES = [
    khop([-1], [3, 1, 2, 0], NEAR),
    khop([3, 3], [3, 1, 0, 2], FAR),
    khop([5, -1, 2], [3, 1, 0, 2], FAR),
    khop([0], [3, 1], []),
]
