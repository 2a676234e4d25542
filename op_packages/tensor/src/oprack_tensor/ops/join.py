"""Tensors put together along a dim, and taken apart."""

from __future__ import annotations

from oprack.op import (
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    IdentityContext,
    InferShapeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
    normal_axis,
)
from oprack.op.families import MKLDNN_DATA_TYPE, USE_MKLDNN, USE_QUANTIZER
from oprack.op.sbp import SbpContext, Signature, factors, letters
from oprack.types import AttrType

from oprack_tensor.dims import sections_of

# What partial_concat and partial_sum share: the same columns of several matrices.
START_INDEX = Attr(0, "First column; negative counts from the end.")

LENGTH = Attr(-1, "How many columns; -1 for all behind the first.")


class Partial(OpDef):
    """An op on the columns start_index to start_index + length of several matrices."""

    X = Input("Matrices of one shape.", duplicable=True)


class PartialGrad(GradOpDef, reads="X", shape_of="X"):
    """Gradient of a Partial: zeros in the columns that were not read."""

    expected_kernel_type = dtype_of("Out@GRAD")


def columns_of(width: int, start: int, length: int) -> slice:
    """The columns of a matrix of that width."""
    start += width if start < 0 else 0
    return slice(start, width if length < 0 else start + length)


def partial_dims(ctx: InferShapeContext) -> tuple[int, int]:
    """(rows, columns that are read), -1 for what is not known. Raises InvalidArgumentError for columns beyond X."""
    shapes = ctx.dims("X")
    known = [{s[i] for s in shapes if s[i] >= 0} for i in range(2)] if all(len(s) == 2 for s in shapes) else []
    ctx.require(
        bool(known) and max(map(len, known)) < 2,
        f"X has tensors of shapes {[list(s) for s in shapes]}; expected matrices of one shape",
    )
    (rows, width), start, length = [max(k, default=-1) for k in known], ctx.attr("start_index"), ctx.attr("length")
    if width < 0:
        return rows, length if length >= 0 else -1
    columns = columns_of(width, start, length)
    ctx.require(
        -width <= start < max(width, 1) and columns.stop <= width,
        f"start_index is {start} and length {length} but X has shape {list(shapes[0])}; expected columns within X",
    )
    return rows, columns.stop - columns.start


class Concat(OpDef, type="concat"):
    r"""Joins tensors along dim `axis`; their other dims are equal. With o_i the places of all pieces before i:
    $$Out[\dots, o_i + j, \dots] = X_i[\dots, j, \dots]$$ The dtype of pieces without elements does not count."""

    X = Input("Tensors of one rank.", duplicable=True)
    AxisTensor = Input("One-element tensor that overrides `axis`.", dispensable=True)
    Out = Output("The joined tensor; LoD of X[0], along dim 0 that of all X joined.")
    axis = Attr(0, "Dim to join along; negative counts from the end.")
    use_mkldnn = USE_MKLDNN
    use_quantizer = USE_QUANTIZER
    mkldnn_data_type = MKLDNN_DATA_TYPE
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("AxisTensor"):
            return []
        names = letters(len(ctx.dim("X")))
        names[ctx.attr("axis", 0)] = None
        return factors({"X": names}, {"Out": names}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        shapes = ctx.dims("X")
        rank, axis = len(shapes[0]), ctx.attr("axis")
        ctx.require(
            all(len(s) == rank for s in shapes),
            f"X has tensors of shapes {[list(s) for s in shapes]}; expected one rank",
        )
        levels = ctx.lod_level("X")
        if ctx.has_input("AxisTensor"):
            ctx.set_lod_level("Out", levels)
            value = ctx.scalar("AxisTensor")
            if value is None:
                ctx.set_dim("Out", (-1,) * rank)
                return
            axis = int(value)
        axis = normal_axis(ctx.op_type, axis, rank)
        if axis or not levels:
            ctx.share_lod("X", "Out")
        else:
            ctx.set_lod_level("Out", levels)
        out = []
        for i in range(rank):
            sizes = [s[i] for s in shapes]
            known = {d for d in sizes if d >= 0}
            if i == axis:
                out.append(sum(sizes) if min(sizes) >= 0 else -1)
                continue
            ctx.require(
                len(known) <= 1,
                f"X has tensors of shapes {[list(s) for s in shapes]}; expected equal dims but for axis {axis}",
            )
            out.append(known.pop() if known else -1)
        ctx.set_dim("Out", out)

    def identity(ctx: IdentityContext) -> bool:
        return ctx.input_count("X") == 1


class ConcatGrad(GradOpDef, of=Concat, reads="Out@GRAD X AxisTensor", shape_of="X", grads_of="X", linear=True):
    """X@GRAD[i] is the part of Out@GRAD that came from X[i]."""


# partial_concat and its gradient.
class PartialConcat(Partial, type="partial_concat"):
    r"""$$Out = [X[0]_{:, s:s+l}, X[1]_{:, s:s+l}, \dots]$$ with s = start_index and l = length, side by side."""

    Out = Output("[rows, columns of all]; no LoD.")
    start_index = START_INDEX
    length = LENGTH

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, columns = partial_dims(ctx)
        ctx.set_dim("Out", (rows, -1 if columns < 0 else columns * ctx.input_count("X")))


class PartialConcatGrad(PartialGrad, of=PartialConcat):
    r"""$$X[k]@GRAD_{:, s:s+l} = Out@GRAD_{:, k l : (k + 1) l}$$ and 0 elsewhere."""


# partial_sum and its gradient.
class PartialSum(Partial, type="partial_sum"):
    r"""$$Out = \sum_k X[k]_{:, s:s+l}$$ with s = start_index and l = length."""

    Out = Output("[rows, columns]; no LoD.")
    start_index = START_INDEX
    length = LENGTH
    use_mkldnn = USE_MKLDNN

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", partial_dims(ctx))


class PartialSumGrad(PartialGrad, of=PartialSum):
    r"""$$X[k]@GRAD_{:, s:s+l} = Out@GRAD$$ and 0 elsewhere."""


class Split(OpDef, type="split"):
    r"""$$Out[k]_{\ldots, i, \ldots} = X_{\ldots, o_k + i, \ldots}$$ along dim `axis`, o_k the sum of the sizes before.

    `num` equal parts, or parts of sizes `sections` (one may be -1).
    """

    X = Input("Tensor of rank 1 or more.")
    AxisTensor = Input("One-element tensor that overrides `axis`.", dispensable=True)
    SectionsTensorList = Input("One-element tensors that override `sections`.", dispensable=True, duplicable=True)
    Out = Output("The parts; LoD of X unless axis is 0.", duplicable=True)
    sections = Attr([], "Size of each part.", type=AttrType.INTS)
    num = Attr(0, "Number of equal parts; 0 when `sections` counts.")
    axis = Attr(0, "Dim to cut along; negative counts from the end.")
    use_mkldnn = Attr(False, "Prefer a oneDNN kernel.")
    mkldnn_data_type = Attr("float32", "dtype of oneDNN kernels.")
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("AxisTensor") or ctx.has("SectionsTensorList"):
            return []
        names = letters(len(ctx.dim("X")))
        names[ctx.attr("axis", 0)] = None
        return factors({"X": names}, {"Out": names}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis, parts = ctx.dim("X"), ctx.attr("axis"), ctx.output_count("Out")
        if ctx.has_input("AxisTensor"):
            value = ctx.scalar("AxisTensor")
            if value is None:
                ctx.set_dims("Out", [(-1,) * len(dims)] * parts)
                return
            axis = int(value)
        axis = normal_axis(ctx.op_type, axis, len(dims))
        sections = list(ctx.attr("sections"))
        if ctx.has_input("SectionsTensorList"):
            values = [ctx.scalar("SectionsTensorList", i) for i in range(ctx.input_count("SectionsTensorList"))]
            sections = [-1 if v is None else int(v) for v in values]
        unknown = not ctx.is_runtime and (dims[axis] < 0 or ctx.has_input("SectionsTensorList"))
        sizes = [-1] * parts if unknown else sections_of(ctx.op_type, dims[axis], ctx.attr("num"), sections)
        ctx.require(len(sizes) == parts, f"Out has {parts} variables for {len(sizes)} parts; expected one each")
        ctx.set_dims("Out", [(*dims[:axis], n, *dims[axis + 1 :]) for n in sizes])
        if axis != 0:
            for i in range(parts):
                ctx.share_lod("X", "Out", 0, i)

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "concat",
            X=fwd.output_grad("Out"),
            AxisTensor=fwd.input("AxisTensor"),
            Out=fwd.input_grad("X"),
            attrs={"axis": fwd.attrs["axis"]},
        )


class Stack(OpDef, type="stack"):
    r"""$$Y_{\ldots, k, \ldots} = X[k]$$: joins tensors of one shape along a new dim `axis`."""

    X = Input("Tensors of one shape.", duplicable=True)
    Y = Output("Shape of X with a new dim of the number of tensors; LoD of X[0] unless it comes first.")
    axis = Attr(0, "Place of the new dim; negative counts from the end of Y.")
    use_mkldnn = USE_MKLDNN

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        made = list(names)
        made.insert(ctx.attr("axis", 0) % (len(names) + 1), None)
        return factors({"X": names}, {"Y": made}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        shapes = ctx.dims("X")
        first = shapes[0]
        for s in shapes[1:]:
            same = len(s) == len(first) and all(a == b or a < 0 or b < 0 for a, b in zip(s, first, strict=True))
            ctx.require(same, f"X has tensors of shapes {list(first)} and {list(s)}; expected equal shapes")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(first) + 1)
        merged = [max(d) for d in zip(*shapes, strict=True)]
        ctx.set_dim("Y", (*merged[:axis], len(shapes), *merged[axis:]))
        if axis:
            ctx.share_lod("X", "Y")


class StackGrad(GradOpDef, of=Stack, reads="Y@GRAD", shape_of="X?", linear=True):
    """X@GRAD[i] is place i of Y@GRAD along `axis`."""

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Y@GRAD")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(dims))
        for i in range(ctx.output_count("X@GRAD")):
            ctx.set_dim("X@GRAD", (*dims[:axis], *dims[axis + 1 :]), i)
            if i < ctx.input_count("X"):
                ctx.share_lod("X", "X@GRAD", i, i)


class Unbind(OpDef, type="unbind"):
    r"""$$Out[i] = X_{\ldots, i, \ldots}$$ along `axis`, without that dim."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("One tensor for each place; LoD of X unless axis is 0.", duplicable=True)
    axis = Attr(0, "Dim to take apart; negative counts from the end.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        axis = ctx.attr("axis", 0) % len(names)
        names[axis] = None
        return factors({"X": names}, {"Out": names[:axis] + names[axis + 1 :]}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, num = ctx.dim("X"), ctx.output_count("Out")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(dims))
        ctx.require(
            dims[axis] in (-1, num),
            f"Out has {num} variables but X {list(dims)} has {dims[axis]} places along axis {axis}; expected one each",
        )
        ctx.set_dims("Out", [(*dims[:axis], *dims[axis + 1 :])] * num)
        if axis != 0:
            for i in range(num):
                ctx.share_lod("X", "Out", 0, i)

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("stack", X=fwd.output_grad("Out"), Y=fwd.input_grad("X"), attrs={"axis": fwd.attrs["axis"]})


class Unstack(OpDef, type="unstack"):
    r"""$$Y[i] = X_{\ldots, i, \ldots}$$ along `axis`, without that dim."""

    X = Input("Tensor of rank 1 or more.")
    Y = Output("`num` tensors.", duplicable=True)
    axis = Attr(0, "Dim to take apart; negative counts from the end.")
    num = Attr(0, "Size of that dim, or 0.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        axis = ctx.attr("axis", 0) % len(names)
        names[axis] = None
        return factors({"X": names}, {"Y": names[:axis] + names[axis + 1 :]}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, num = ctx.dim("X"), ctx.output_count("Y")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(dims))
        ctx.require(
            dims[axis] in (-1, num),
            f"Y has {num} variables but X {list(dims)} has {dims[axis]} places along axis {axis}; expected one each",
        )
        ctx.set_dims("Y", [(*dims[:axis], *dims[axis + 1 :])] * num)


class UnstackGrad(GradOpDef, of=Unstack, linear=True):
    """X@GRAD stacks the gradients of Y along `axis`."""

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Y@GRAD")
        axis = normal_axis(ctx.op_type, ctx.attr("axis"), len(dims) + 1)
        ctx.set_dim("X@GRAD", (*dims[:axis], ctx.input_count("Y@GRAD"), *dims[axis:]))
