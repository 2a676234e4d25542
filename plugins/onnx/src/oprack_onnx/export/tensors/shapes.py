"""Tensors made, reshaped, joined, cut and repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
from oprack.errors import UnimplementedError
from oprack.tensor import numpy_dtype
from oprack.types import VarType

from oprack_onnx.export.expressions import LAST, Expr, arange, read, write
from oprack_onnx.export.graph import Call, exported
from oprack_onnx.values import ELEM_TYPES

END = 2**63 - 1


def int64(call: Call, slot: str, i: int = 0) -> str:
    """An input as int64 in one row."""
    value = call.input(slot, i)
    if call.graph.dtype(call.name(slot, i)) is not VarType.INT64:
        value = call.graph.cast(value, VarType.INT64)
    return call.node("Reshape", value, call.graph.ints([-1]))


def listed(call: Call, attr: str, tensor: str = "", tensors: str = "") -> str:
    """Integers that are an attribute, a tensor, or a tensor each."""
    if tensor and call.has(tensor):
        return int64(call, tensor)
    if tensors and call.has(tensors):
        return call.node("Concat", *(int64(call, tensors, i) for i in range(len(call.op.input(tensors)))), axis=0)
    value = call.attr(attr)
    if isinstance(value, str) or (value and isinstance(value[0], str)):
        names = [value] if isinstance(value, str) else value
        parts = [
            call.node("Reshape", call.graph.cast(call.graph.value(n), VarType.INT64), call.graph.ints([-1]))
            for n in names
        ]
        return call.node("Concat", *parts, axis=0)
    return call.graph.ints(value)


@exported("fill_constant", "assign_value", "eye", "fill_any_like", "fill_zeros_like")
def filled(call: Call) -> None:
    if call.type == "assign_value":
        dtype = VarType(call.attr("dtype"))
        values: Any = next(
            (
                v
                for n in ("values", "fp32_values", "int32_values", "int64_values", "bool_values")
                if (v := call.attr(n))
            ),
            [],
        )
        call.set(call.graph.constant(np.reshape(values, call.attr("shape")), numpy_dtype(dtype)), dtype=dtype)
    elif call.type == "eye":
        dtype = VarType(call.attr("dtype"))
        columns = call.attr("num_columns")
        made = np.eye(call.attr("num_rows"), columns if columns > 0 else None)
        call.set(call.graph.constant(made, numpy_dtype(dtype)), dtype=dtype)
    elif call.type in ("fill_any_like", "fill_zeros_like"):
        number = call.attr("dtype") if call.type == "fill_any_like" else -1
        wanted = VarType(number) if number is not None and number >= 0 else call.dtype()
        value = call.attr("value") if call.type == "fill_any_like" else 0
        constant = call.graph.constant(value, numpy_dtype(wanted))
        call.set(call.node("Expand", constant, call.node("Shape", call.input())), dtype=wanted)
    else:
        constant_fill(call)


def constant_fill(call: Call) -> None:
    """fill_constant, of a shape that may be a tensor."""
    dtype = VarType(call.attr("dtype"))
    text = call.attr("str_value")
    value = float(text) if text else call.attr("value")
    if call.has("ValueTensor"):
        one = call.node("Reshape", call.input("ValueTensor"), call.graph.ints([1]))
        constant = call.graph.cast(one, dtype)
    else:
        constant = call.graph.constant(
            int(float(text))
            if text
            and dtype not in (VarType.FP32, VarType.FP64)
            and "." not in text
            and "e" not in text
            and "inf" not in text
            else value,
            numpy_dtype(dtype),
        )
    dynamic = call.has("ShapeTensor") or call.has("ShapeTensorList")
    shape = call.attr("shape")
    if not dynamic and not call.has("ValueTensor"):
        kept = np.full([int(d) for d in shape], call.graph.initializers[constant])
        if kept.size <= 1 << 20:
            call.set(call.graph.constant(kept, kept.dtype), dtype=dtype)
            return
    dims = listed(call, "shape", "ShapeTensor", "ShapeTensorList")
    call.set(call.node("Expand", constant, dims), dtype=dtype)


@exported("range")
def range_(call: Call) -> None:
    scalars = [call.node("Reshape", call.input(s), call.graph.constant([], np.int64)) for s in ("Start", "End", "Step")]
    call.set(call.node("Range", *scalars))


@exported("shape")
def shape(call: Call) -> None:
    call.set(call.graph.cast(call.node("Shape", call.input("Input")), VarType.INT32), dtype=VarType.INT32)


@exported("size")
def size(call: Call) -> None:
    call.set(call.node("Size", call.input("Input")))


@exported("reshape2", "reshape")
def reshape(call: Call) -> None:
    x, given = read(call), call.graph.shape(call.name("X")) or ()
    dims = Expr(call.graph, listed(call, "shape", "Shape", "ShapeTensor"), VarType.INT64)
    filled = [i for i, d in enumerate(given) if d != 0]
    if 0 < len(filled) < len(given):
        # Of an empty tensor nobody can work out what -1 stands for, so it is said: what the other dims leave
        rest = x.shape().gather(filled).reduce("Prod", [0], True)
        left = rest / (dims > 0).select(dims, 1).reduce("Prod", [0], True)
        dims = (dims < 0).select(left, dims)
    call.set(x.op("Reshape", dims).name)


@exported("flatten_contiguous_range", "flatten2")
def flatten(call: Call) -> None:
    if call.type == "flatten2":
        call.set(call.node("Flatten", call.input(), axis=call.attr("axis")))
        return
    rank = max(call.rank(), 1)
    start, stop = call.attr("start_axis") % rank, call.attr("stop_axis") % rank
    if call.rank() == 0:
        call.set(call.node("Reshape", call.input(), call.graph.ints([1])))
        return
    # 0 keeps a dim that stands where it stood; those behind are told by number, or by the tensor itself
    tail = list(call.dims()[stop + 1 :])
    if min(tail, default=0) >= 0:
        call.set(call.node("Reshape", call.input(), call.graph.ints([0] * start + [-1] + tail)))
        return
    x = call.input()
    behind = call.node("Shape", x, start=stop + 1)
    parts = [call.graph.ints([-1]), behind]
    if start:
        parts.insert(0, call.node("Shape", x, start=0, end=start))
    call.set(call.node("Reshape", x, call.node("Concat", *parts, axis=0)))


@exported("transpose2", "transpose")
def transpose(call: Call) -> None:
    call.set(call.node("Transpose", call.input(), perm=call.attr("axis")))


@exported("squeeze2", "squeeze", "unsqueeze2", "unsqueeze")
def squeeze(call: Call) -> None:
    out = "Squeeze" if call.type.startswith("squeeze") else "Unsqueeze"
    if out == "Unsqueeze":
        value = call.input()
        if len(call.op.input("AxesTensorList")) > 1:
            raise UnimplementedError("several of its axes are tensors")
        if call.has("AxesTensor") or call.has("AxesTensorList") or isinstance(call.attr("axes"), str):
            call.set(call.node(out, value, listed(call, "axes", "AxesTensor", "AxesTensorList")))
            return
        rank = call.rank()
        for axis in call.attr("axes"):  # one after the other, as Fluid does
            value = call.node(out, value, call.graph.ints([axis if axis >= 0 else axis + rank + 1]))
            rank += 1
        call.set(value)
        return
    axes = call.attr("axes")
    if axes:
        dims = call.dims()
        kept = [a for a in axes if not dims or dims[a] in (1, -1)]
        call.set(call.node(out, call.input(), call.graph.ints(kept)) if kept else call.node("Identity", call.input()))
    else:
        call.set(call.node(out, call.input()))


@exported("concat")
def concat(call: Call) -> None:
    if call.has("AxisTensor"):
        raise UnimplementedError("its axis is a tensor")
    kind = call.dtype()
    values = call.inputs()
    for i, name in enumerate(call.op.input("X")):
        if call.graph.dtype(name) is not kind:
            values[i] = call.graph.cast(values[i], kind)
    call.set(call.node("Concat", *values, axis=call.attr("axis")))
    levels = [call.graph.lod(n) for n in call.op.input("X")]
    if call.attr("axis") == 0 and all(levels) and len({len(v) for v in levels}) == 1:
        joined_lod(call, levels)


def joined_lod(call: Call, levels: list[list[str]]) -> None:
    """The LoD of rows one behind the other: offsets of each level go on where those before have ended."""
    from oprack_onnx.export.lod import set_lod

    out = []
    for every in zip(*levels, strict=True):
        parts = [Expr(call.graph, n, VarType.INT64) for n in every]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.join(part.slice(1, LAST) + whole.slice(-1, LAST), axis=0)
        out.append(whole)
    set_lod(call, out)


@exported("stack")
def stack(call: Call) -> None:
    axis = call.attr("axis")
    axis = axis if axis >= 0 else axis + call.rank() + 1
    parts = [call.node("Unsqueeze", v, call.graph.ints([axis])) for v in call.inputs()]
    call.set(call.node("Concat", *parts, axis=axis), "Y")


@exported("split", "unbind", "unstack")
def split(call: Call) -> None:
    slot = "Y" if call.type == "unstack" else "Out"
    count, axis = len(call.op.output(slot)), call.attr("axis")
    if call.type == "split":
        if call.has("AxisTensor") or call.has("SectionsTensorList"):
            raise UnimplementedError("its axis or sizes are tensors")
        sections = list(call.attr("sections"))
        dim = call.dims()[axis]
        if -1 in sections:
            if dim < 0:
                raise UnimplementedError("a size follows from one that is not known")
            sections[sections.index(-1)] = dim - sum(s for s in sections if s > 0)
        more: dict[str, Any] = {"num_outputs": count} if not sections else {}
        given = [call.graph.ints(sections)] if sections else []
        parts = call.graph.node("Split", [call.input(), *given], count, axis=axis, **more)
    else:
        parts = call.graph.node("Split", [call.input()], count, axis=axis, num_outputs=count)
    for i, part in enumerate([parts] if count == 1 else parts):
        if call.type != "split":
            part = call.node("Squeeze", part, call.graph.ints([axis]))
        call.set(part, slot, i)


@exported("slice", "strided_slice")
def slice_(call: Call) -> None:
    name = call.name("Input")
    var = call.graph.block.find_var_recursive(name)
    if var is not None and var.type is VarType.LOD_TENSOR_ARRAY:
        raise UnimplementedError("it takes a tensor out of an array")
    axes = call.attr("axes")
    starts = listed(call, "starts", "StartsTensor", "StartsTensorList")
    ends = listed(call, "ends", "EndsTensor", "EndsTensorList")
    inputs = [call.input("Input"), starts, ends, call.graph.ints(axes)]
    if call.type == "strided_slice":
        strides = call.attr("strides")
        if any(s < 0 for s in strides) and any(e < 0 for e in call.attr("ends")):
            raise UnimplementedError("it goes backwards to an end that counts from the end")
        inputs.append(listed(call, "strides", "StridesTensor", "StridesTensorList"))
    out = call.node("Slice", *inputs)
    gone = call.attr("decrease_axis")
    call.set(call.node("Squeeze", out, call.graph.ints(gone)) if gone else out)


@exported("tile")
def tile(call: Call) -> None:
    """Repeats of as many axes as there are: of what is missing on either side there is one."""
    x, rank = read(call), call.rank()
    if call.has("RepeatTimes"):
        count = call.dims("RepeatTimes")[0]
    else:
        count = len(call.op.input("repeat_times_tensor")) or len(call.attr("repeat_times"))
    times = Expr(call.graph, listed(call, "repeat_times", "RepeatTimes", "repeat_times_tensor"), VarType.INT64)
    if count < rank:
        times = times.ints([1] * (rank - count)).join(times, axis=0)
    elif count > rank:
        x = x.unsqueeze(*range(count - rank))
    write(call, x.op("Tile", times))


@exported("expand_as_v2")
def expand_as(call: Call) -> None:
    x = read(call)
    write(call, x.expand(read(call, "Y").shape()) if call.has("Y") else x.expand(*call.attr("target_shape")))


@exported("expand_v2")
def expand(call: Call) -> None:
    x = call.input()
    dims = listed(call, "shape", "Shape", "expand_shapes_tensor")
    # -1 keeps a dim, which 1 says in ONNX
    one = call.graph.constant([1])
    known = not (call.has("Shape") or call.has("expand_shapes_tensor")) and all(
        isinstance(d, int) for d in call.attr("shape")
    )
    if known:
        dims = call.graph.ints([1 if d == -1 else d for d in call.attr("shape")])
    else:
        dims = call.node("Where", call.node("Less", dims, call.graph.constant([0])), one, dims)
    call.set(call.node("Expand", x, dims))


@exported("meshgrid")
def meshgrid(call: Call) -> None:
    values = call.inputs()
    rows = [call.node("Reshape", v, call.graph.ints([-1])) for v in values]
    sizes = call.node("Concat", *(call.node("Shape", r) for r in rows), axis=0)
    for i, row in enumerate(rows):
        shape = [1] * len(rows)
        shape[i] = -1
        call.set(call.node("Expand", call.node("Reshape", row, call.graph.ints(shape)), sizes), "Out", i)


@exported("gather", "index_select", "gather_nd", "take_along_axis")
def gather(call: Call) -> None:
    if call.type == "gather_nd":
        index = call.input("Index")
        if call.dtype("Index") is not VarType.INT64:
            index = call.graph.cast(index, VarType.INT64)
        call.set(call.node("GatherND", call.input(), index))
        return
    if call.type == "take_along_axis":
        call.set(
            call.node("GatherElements", call.input("Input"), call.input("Index"), axis=call.attr("Axis")), "Result"
        )
        return
    if call.has("Axis"):
        raise UnimplementedError("its axis is a tensor")
    axis = call.attr("axis" if call.type == "gather" else "dim")
    index = call.input("Index")
    if call.rank("Index") > 1:
        index = call.node("Reshape", index, call.graph.ints([-1]))
    call.set(call.node("Gather", call.input(), index, axis=axis))


@exported("lookup_table_v2", "lookup_table")
def lookup_table(call: Call) -> None:
    ids = call.input("Ids")
    if call.type == "lookup_table":
        ids = call.node("Squeeze", ids, call.graph.ints([-1]))
    out = call.node("Gather", call.input("W"), ids, axis=0)
    padding = call.attr("padding_idx")
    if padding is not None and padding != -1:
        rows = call.dims("W")[0]
        wanted = call.graph.constant(padding if padding >= 0 else padding + rows, numpy_dtype(call.dtype("Ids")))
        mask = call.node("Unsqueeze", call.node("Equal", ids, wanted), call.graph.ints([-1]))
        zero = call.graph.constant(0, numpy_dtype(call.dtype("W")))
        out = call.node("Where", mask, zero, out)
    call.set(out)


@exported("one_hot_v2")
def one_hot(call: Call) -> None:
    """A comparison with all classes: of many dtypes ONNX Runtime has no OneHot."""
    depth = int64(call, "depth_tensor") if call.has("depth_tensor") else call.graph.ints([call.attr("depth")])
    classes = arange(Expr(call.graph, depth, VarType.INT64))
    write(call, read(call).cast(VarType.INT64).unsqueeze(-1).equal(classes).cast(VarType(call.attr("dtype"))))


@exported("where_index")
def where_index(call: Call) -> None:
    call.set(call.node("Transpose", call.node("NonZero", call.input("Condition")), perm=[1, 0]))


@exported("tril_triu")
def tril_triu(call: Call) -> None:
    k = call.graph.constant(call.attr("diagonal"))
    call.set(call.node("Trilu", call.input(), k, upper=int(not call.attr("lower"))))


@exported("flip")
def flip(call: Call) -> None:
    axes = call.attr("axis")
    n = len(axes)
    ends = call.graph.constant([-END] * n)
    call.set(
        call.node(
            "Slice", call.input(), call.graph.ints([-1] * n), ends, call.graph.ints(axes), call.graph.ints([-1] * n)
        )
    )


@exported("pad3d", "pad2d", "pad")
def pad(call: Call) -> None:
    if call.has("Paddings"):
        raise UnimplementedError("its paddings are a tensor")
    pads, rank = list(call.attr("paddings")), call.rank()
    mode = "constant" if call.type == "pad" else call.attr("mode")
    if call.type == "pad":
        before, behind = pads[0::2], pads[1::2]
    else:
        call.refuse("data_format", "NCHW", "NCDHW")
        pairs = list(zip(pads[0::2], pads[1::2], strict=True))
        pairs = pairs if call.type == "pad2d" else pairs[::-1]  # pad3d has the last axis first
        pairs = pairs[-(rank - 2) :]
        before, behind = [0, 0, *(p[0] for p in pairs)], [0, 0, *(p[1] for p in pairs)]
    names = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "edge": "edge", "circular": "wrap"}
    value = call.attr({"pad": "pad_value", "pad2d": "pad_value", "pad3d": "value"}[call.type])
    constant = call.graph.constant(value, numpy_dtype(call.dtype()))
    call.set(call.node("Pad", call.input(), call.graph.ints(before + behind), constant, mode=names[mode]))


@exported("increment")
def increment(call: Call) -> None:
    call.set(call.node("Add", call.input(), call.graph.constant(call.attr("step"), numpy_dtype(call.dtype()))))


@exported("select_input")
def select_input(call: Call) -> None:
    from onnx import helper

    from oprack_onnx.export.tensors.control import value_info

    first, second = call.inputs()
    graph, kinds = call.graph, [call.graph.types.get(v) for v in call.inputs()]
    unset = graph.initializers.get(second)
    # What stands for a variable that one branch does not set is a number of any dtype
    wanted = kinds[0] if unset is not None and unset.size == 1 and first not in graph.initializers else kinds[1]
    mask = call.node("Reshape", call.node("Equal", int64(call, "Mask"), graph.ints([1])), graph.constant([]))
    graphs = []
    for value, kind in ((second, kinds[1]), (first, kinds[0])):
        out = graph.fresh("selected")
        cast = kind is not wanted and wanted is not None
        attrs: dict[str, Any] = {"to": ELEM_TYPES[wanted]} if cast and wanted is not None else {}
        if wanted is not None:
            graph.types[out] = wanted
        node = helper.make_node("Cast" if cast else "Identity", [value], [out], **attrs)
        graphs.append(helper.make_graph([node], "branch", [], [value_info(graph, call.name("X"), out)]))
    found = call.node("If", mask, then_branch=graphs[0], else_branch=graphs[1])
    if wanted is not None:
        graph.types[found] = wanted
    call.set(found, dtype=call.dtype())


@exported("fill_constant_batch_size_like")
def fill_like_batch(call: Call) -> None:
    """A shape of numbers, one of which is that of an input."""
    graph, dtype = call.graph, VarType(call.attr("dtype"))
    shape, place = list(call.attr("shape")), call.attr("output_dim_idx")
    source = call.attr("input_dim_idx")
    batch = call.node("Shape", call.input("Input"), start=source, end=source + 1)
    levels = call.graph.lod(call.name("Input"))
    if levels and source == 0:  # sequences are counted, not rows
        offsets = Expr(graph, levels[-1], VarType.INT64)
        batch = (offsets.size(0) - 1).name
    parts = [graph.ints(shape[:place]), batch, graph.ints(shape[place + 1 :])]
    text = call.attr("str_value")
    constant = graph.constant(float(text) if text else call.attr("value"), numpy_dtype(dtype))
    call.set(call.node("Expand", constant, call.node("Concat", *parts, axis=0)), dtype=dtype)
