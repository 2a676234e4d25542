"""Cases of graph_sample_neighbors that do not depend on the draw: all neighbours, or none."""

from __future__ import annotations

from oprack.testing import OpCase

from ._graph import ALL, EDGES, NODES, NONE, ROW, STARTS

OUTPUTS = ("Out", "Out_Count", "Out_Eids")
CASES = [
    OpCase(
        "graph_sample_neighbors",
        {"Row": ROW, "Col_Ptr": STARTS, "X": NODES, "Eids": EDGES},
        {"sample_size": size, "return_eids": True},
        dict(zip(OUTPUTS, found, strict=True)),
        name=f"at most {size}",
    )
    for size, found in ((-1, ALL), (3, ALL), (0, NONE))
]
