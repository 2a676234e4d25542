"""Slices of a tensor that are set."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import UnimplementedError
from oprack.tensor import numpy_dtype

from oprack_onnx.export.graph import Call, exported
from oprack_onnx.export.tensors.shapes import listed


@exported("set_value")
def set_value(call: Call) -> None:
    """Where the places of a slice are counted by an input of places, that is ScatterND."""
    graph, rank = call.graph, call.rank("Input")
    axes = list(call.attr("axes"))
    if call.attr("none_axes") or call.has("StepsTensorList") or any(s != 1 for s in call.attr("steps") or [1]):
        raise UnimplementedError("it sets a slice with steps or with new axes")
    order = axes + [a for a in range(rank) if a not in axes]
    x, count = call.node("Transpose", call.input("Input"), perm=order), len(axes)
    starts, ends = listed(call, "starts", "", "StartsTensorList"), listed(call, "ends", "", "EndsTensorList")
    grids, sizes = [], call.node("Shape", x)
    for i in range(count):
        size = call.node("Slice", sizes, graph.ints([i]), graph.ints([i + 1]))
        row = call.node("Range", graph.constant(0), call.node("Squeeze", size), graph.constant(1))
        bounds = (call.node("Slice", b, graph.ints([i]), graph.ints([i + 1])) for b in (starts, ends))
        grids.append(call.node("Slice", row, *bounds, graph.ints([0])))
    lengths = call.node("Concat", *(call.node("Shape", g) for g in grids), axis=0)
    spread = []
    for i, grid in enumerate(grids):
        shape = [1] * count
        shape[i] = -1
        whole = call.node("Expand", call.node("Reshape", grid, graph.ints(shape)), lengths)
        spread.append(call.node("Unsqueeze", whole, graph.ints([count])))
    rest = call.node("Shape", x, start=count) if rank > count else graph.ints([])
    wanted = call.node("Concat", lengths, rest, axis=0)
    value = _expanded_value(call, order, wanted)
    out = call.node("ScatterND", x, call.node("Concat", *spread, axis=count), value)
    call.set(call.node("Transpose", out, perm=[int(a) for a in np.argsort(order)]))


def _expanded_value(call: Call, order: list[int], wanted: str) -> str:
    """The value of set_value in the shape of the slice, whose axes stand in `order`."""
    graph, rank = call.graph, len(order)
    if call.has("ValueTensor"):
        value, own = call.input("ValueTensor"), call.rank("ValueTensor")
    else:
        names = ("values", "fp32_values", "fp64_values", "int32_values", "int64_values", "bool_values")
        values: Any = next((v for n in names if (v := call.attr(n))), [0])
        made = np.reshape(values, call.attr("shape"))
        value, own = graph.constant(made, numpy_dtype(call.dtype("Input"))), made.ndim
    gone = [int(a) for a in call.attr("decrease_axes") or ()]
    if gone and own == rank - len(gone):
        value, own = call.node("Unsqueeze", value, graph.ints(gone)), rank
    if own < rank and own:
        value = call.node("Unsqueeze", value, graph.ints(range(rank - own)))
        own = rank
    return call.node("Expand", call.node("Transpose", value, perm=order) if own == rank else value, wanted)
