"""Parts of tensors by place, mask or range, and what is written there."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import (
    REQUIRED,
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
    empty_grad,
    normal_axis,
)
from oprack.op.sbp import Rule, SbpContext, Signature, elementwise, factors, leading, letters
from oprack.types import AttrType

from oprack_tensor.dims import given_ints


# What crop and crop_tensor share.
def crop_sizes(dims: Sequence[int], shape: Sequence[int], offsets: Sequence[int]) -> list[int]:
    """Sizes of the part; one of -1 reaches to the end."""
    return [d - o if s == -1 else s for d, s, o in zip(dims, shape, offsets, strict=True)]


def given_offsets(ctx: InferShapeContext, tensors: str = "") -> list[int | None]:
    """Where the part begins along each dim, by tensors or else by `offsets`; without any at 0."""
    rank = len(ctx.dim("X"))
    absent = not (ctx.has_input("Offsets") or (tensors and ctx.has_input(tensors)) or ctx.attr("offsets"))
    return [0] * rank if absent else given_ints(ctx, "offsets", "Offsets", tensors, likely=rank)


def set_cropped(ctx: InferShapeContext, shape: Sequence[int | None], offsets: Sequence[int | None]) -> None:
    """Shape rule: Out is the part of X with this shape that begins at the offsets; None is not known yet."""
    dims = ctx.dim("X")
    ctx.require(
        len(shape) == len(dims) == len(offsets),
        f"X has shape {list(dims)}, shape is {list(shape)} and offsets {list(offsets)}; expected a size and an offset "
        "for each dim",
    )
    out = []
    for d, size, offset in zip(dims, shape, offsets, strict=True):
        if size is None or (size == -1 and (d < 0 or offset is None)):
            out.append(-1)
            continue
        size = d - (offset or 0) if size == -1 else size
        fits = size >= 0 and (offset is None or (offset >= 0 and (d < 0 or offset + size <= d)))
        ctx.require(
            fits,
            f"a part of shape {list(shape)} at {list(offsets)} is not in X of shape {list(dims)}; expected offsets of "
            "at least 0 and parts that end within X",
        )
        out.append(size)
    ctx.set_dim("Out", out)


# What slice and strided_slice share.
def cut(tensors: Sequence[str]) -> Rule:
    """The rule of splitting: dims that are not cut; nothing when one of these inputs says where to cut."""

    def rule(ctx: SbpContext) -> list[Signature]:
        if any(ctx.has(slot) for slot in tensors):
            return []
        names = letters(len(ctx.dim("Input")))
        for axis in ctx.attr("axes"):
            names[axis] = None
        gone = {a % len(names) for a in ctx.attr("decrease_axis", [])}
        made = [n for k, n in enumerate(names) if k not in gone]
        if len(made) != len(ctx.dim("Out")):  # Fluid's result of one element is [1]
            return []
        return factors({"Input": names}, {"Out": made}, linear=(("Input",),))

    return rule


# crop and its gradient.
class Crop(OpDef, type="crop"):
    r"""$$Out_i = X_{i + offsets}$$ a part of X of the given shape."""

    X = Input("Tensor of rank 1 or more.")
    Y = Input("Tensor whose shape overrides `shape`; its values are not read.", dispensable=True)
    Offsets = Input("int32 [rank of X], overrides `offsets`.", dispensable=True)
    Out = Output("Tensor of that shape; no LoD.")
    offsets = Attr([], "First place of the part along each dim; none means 0.", type=AttrType.INTS)
    shape = Attr([], "Shape of the part; -1 reaches to the end.", type=AttrType.INTS)
    no_need_buffer_vars = ("Y",)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        shape = [None if d < 0 else d for d in ctx.dim("Y")] if ctx.has_input("Y") else ctx.attr("shape")
        set_cropped(ctx, shape, given_offsets(ctx))


class CropGrad(GradOpDef, of=Crop, reads="X Offsets", shape_of="X", grads_of="X"):
    """X@GRAD holds Out@GRAD where the part was, 0 elsewhere."""


# crop_tensor and its gradient.
class CropTensor(OpDef, type="crop_tensor"):
    r"""$$Out_i = X_{i + offsets}$$ a part of X of the given shape."""

    X = Input("Tensor of rank 1 or more.")
    Shape = Input("int32 [rank of X], overrides `shape`.", dispensable=True)
    ShapeTensor = Input("One-element tensors, override `shape`.", dispensable=True, duplicable=True)
    Offsets = Input("int32 [rank of X], overrides `offsets`.", dispensable=True)
    OffsetsTensor = Input("One-element tensors, override `offsets`.", dispensable=True, duplicable=True)
    Out = Output("Tensor of that shape; no LoD.")
    shape = Attr([], "Shape of the part; -1 reaches to the end.", type=AttrType.INTS)
    offsets = Attr([], "First place of the part along each dim; none means 0.", type=AttrType.INTS)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        shape = given_ints(ctx, "shape", "Shape", "ShapeTensor", likely=len(ctx.dim("X")))
        set_cropped(ctx, shape, given_offsets(ctx, "OffsetsTensor"))


class CropTensorGrad(GradOpDef, of=CropTensor, reads="X Offsets OffsetsTensor", shape_of="X", grads_of="X"):
    """X@GRAD holds Out@GRAD where the part was, 0 elsewhere."""


class Hash(OpDef, type="hash"):
    r"""$$Out_{i, h, 0} = \operatorname{XXH64}_{h}(X_i) \bmod mod\_by$$ of the bytes of each row, with h as the seed."""

    X = Input("int32 or int64 [n, k]")
    Out = Output("[n, num_hash, 1]; LoD of X.")
    num_hash = Attr(1, "How many hashes of each row.").at_least(1)
    mod_by = Attr(100000, "Hashes are below this.", type=AttrType.LONG).at_least(1)
    runtime_shape = Attr(
        True, "Paddle: the shape rule runs with the kernel.", name="@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@"
    )
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, _ = ctx.require_rank("X", 2)
        ctx.set_dim("Out", (rows, ctx.attr("num_hash"), 1))
        ctx.share_lod("X", "Out")


# index_add and its gradient.
class IndexAdd(OpDef, type="index_add"):
    r"""$$Out = X,\quad Out_{\dots, Index_i, \dots} \mathrel{+}= AddValue_{\dots, i, \dots}$$ along dim `axis`."""

    X = Input("Tensor of rank 1 or more.")
    Index = Input("int32 or int64 [n]; negative counts from the end of the dim.")
    AddValue = Input("X's shape with n in place of dim `axis`.")
    Out = Output("Shape and LoD of X.")
    axis = Attr(0, "Dim along which Index counts; negative counts from the end.")
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, (n,), axis = ctx.dim("X"), ctx.require_rank("Index", 1), ctx.axis("X")
        ctx.require_dims("AddValue", [n if i == axis else d for i, d in enumerate(dims)], why="for X and Index")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class IndexAddGrad(
    GradOpDef, of=IndexAdd, reads="Index AddValue", shape_of="AddValue", grads_of="X AddValue", like={"X": "Out@GRAD"}
):
    r"""$$X@GRAD = Out@GRAD,\quad AddValue@GRAD_{\dots, i, \dots} = Out@GRAD_{\dots, Index_i, \dots}$$"""


# index_put and its gradient.
class IndexPut(OpDef, type="index_put"):
    r"""$$out = x,\quad out_{indices} = value$$ or, with accumulate, $out_{indices} \mathrel{+}= value$ for each place,
    also where it is named again. Indices broadcast with each other; truth values stand for the places where they hold.
    """

    x = Input("Tensor of rank 1 or more.")
    indices = Input("int32 or int64 tensors, or bool of the dims that they choose from.", duplicable=True)
    value = Input("A shape that broadcasts to that of what is chosen.")
    out = Output("Shape and LoD of x.")
    accumulate = Attr(False, "Add instead of replacing.")
    inplace = {"x": "out"}
    expected_kernel_type = dtype_of("x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("x")
        count = ctx.input_count("indices")
        ctx.require(
            0 < count <= max(len(dims), 1),
            f"there are {count} indices for x of shape {list(dims)}; expected 1 to its rank",
        )
        ctx.set_dim("out", dims)
        ctx.share_lod("x", "out")


class IndexPutGrad(GradOpDef, of=IndexPut, reads="x indices value", shape_of="x value", grads_of="x value"):
    r"""$$x@GRAD = out@GRAD$$ with zeros at the places that were replaced, and $$value@GRAD = out@GRAD_{indices}$$
    summed where value was broadcast."""


class IndexSample(OpDef, type="index_sample"):
    r"""$$Out_{i,j} = X_{i, Index_{i,j}}$$"""

    X = Input("[n, m]")
    Index = Input("int32 or int64 [n, k].")
    Out = Output("[n, k]; LoD of Index.")
    expected_kernel_type = dtype_of("X")
    sbp = leading(("X", "Index"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        (n, _), index = ctx.require_rank("X", 2), ctx.require_rank("Index", 2)
        ctx.require(n in (-1, index[0]) or index[0] == -1, f"X has {n} rows and Index {index[0]}; expected as many")
        ctx.set_dim("Out", index)
        ctx.share_lod("Index", "Out")


class IndexSampleGrad(GradOpDef, of=IndexSample, reads="Index", shape_of="X", grads_of="X", linear=True):
    """Adds each element of Out@GRAD to the place of X@GRAD that it came from."""


class IndexSelect(OpDef, type="index_select"):
    r"""$$Out_{..., i, ...} = X_{..., Index_i, ...}$$ along dim `dim`."""

    X = Input("Tensor of rank 1 or more.")
    Index = Input("int32 or int64 [n]; negative counts from the end of the dim.")
    Out = Output("X with n in place of dim `dim`; LoD of X.")
    dim = Attr(0, "Dim to pick along; negative counts from the end.")
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        names = letters(len(ctx.dim("X")))
        axis = ctx.attr("dim", 0) % len(names)
        names[axis] = None
        return factors(
            {"X": names, "Index": ["rows"]}, {"Out": [*names[:axis], "rows", *names[axis + 1 :]]}, linear=(("X",),)
        )

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, (n, *_) = ctx.dim("X"), ctx.require_rank("Index", 1, 2)
        axis = normal_axis(ctx.op_type, ctx.attr("dim"), len(dims), "dim")
        ctx.set_dim("Out", (*dims[:axis], n, *dims[axis + 1 :]))
        ctx.share_lod("X", "Out")


class IndexSelectGrad(GradOpDef, of=IndexSelect, reads="Index", shape_of="X", grads_of="X", linear=True):
    """Adds each part of Out@GRAD to the place of X@GRAD that it came from."""


class MaskedSelect(OpDef, type="masked_select"):
    r"""$$Y = (X_i : Mask_i)$$ in row-major order; X and Mask are broadcast."""

    X = Input("Tensor of any shape.")
    Mask = Input("bool, of a shape that broadcasts with X.")
    Y = Output("[number of true elements]")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Y", (-1,))


class MaskedSelectGrad(GradOpDef, of=MaskedSelect, reads="Mask", shape_of="X", grads_of="X", linear=True):
    """X@GRAD holds Y@GRAD at the places that were selected, 0 elsewhere."""


# multiplex and its gradient.
class Multiplex(OpDef, type="multiplex"):
    r"""$$Out_i = X[Ids_i]_i$$ row i of the tensor that Ids names."""

    X = Input("Tensors of one shape, of rank 2 or more.", duplicable=True)
    Ids = Input("int32 [n, 1], which tensor each of the n rows comes from.")
    Out = Output("Shape of X[0] with n rows; LoD of X[0].")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        shapes, ids = ctx.dims("X"), ctx.dim("Ids")
        ctx.require(
            len(shapes[0]) >= 2 and all(s == shapes[0] for s in shapes),
            f"X has tensors of shapes {[list(s) for s in shapes]}; expected one shape of rank 2 or more",
        )
        ctx.require(len(ids) == 2 and ids[1] in (1, -1), f"Ids has shape {list(ids)}; expected [n, 1]")
        rows = shapes[0][0]
        ctx.require(
            -1 in (rows, ids[0]) or ids[0] <= rows, f"Ids has {ids[0]} rows and X {rows}; expected at most as many"
        )
        ctx.set_dim("Out", (ids[0], *shapes[0][1:]))
        ctx.share_lod("X", "Out")


class MultiplexGrad(GradOpDef, of=Multiplex, reads="X Ids", shape_of="X", grads_of="X"):
    r"""$$X[k]@GRAD_i = Out@GRAD_i \cdot [Ids_i = k]$$"""

    expected_kernel_type = dtype_of("Out@GRAD")


# repeat_interleave and its gradient.
class RepeatInterleave(OpDef, type="repeat_interleave"):
    r"""Out repeats part i of X along dim `dim` $r_i$ times, one after the other, where $r_i$ is
    Repeats or RepeatsTensor_i."""

    X = Input("Tensor of rank 1 or more.")
    RepeatsTensor = Input("int32 or int64 [size of the dim], overrides `Repeats`.", dispensable=True)
    Out = Output("X with the sum of all repetitions in place of the dim.")
    Repeats = Attr(0, "How often to repeat each part.")
    dim = Attr(0, "Dim to repeat along; negative counts from the end.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, dim, times = list(ctx.dim("X")), ctx.axis("X", "dim"), ctx.attr("Repeats")
        if ctx.has_input("RepeatsTensor"):
            ctx.require_dims("RepeatsTensor", [dims[dim]], why=f"since X has shape {dims}")
            dims[dim] = -1
        else:
            ctx.require(times > 0, f"Repeats is {times}; expected 1 or more, or a RepeatsTensor")
            dims[dim] = -1 if dims[dim] < 0 else dims[dim] * times
        ctx.set_dim("Out", dims)


class RepeatInterleaveGrad(
    GradOpDef, of=RepeatInterleave, reads="X RepeatsTensor", shape_of="X", grads_of="X", linear=True
):
    """X@GRAD sums Out@GRAD over the repetitions of each part."""


class ScatterNdAdd(OpDef, type="scatter_nd_add"):
    r"""$$Out = X$$, then $$Out_{Index_i} \mathrel{+}= Updates_i$$ for each row i of Index."""

    X = Input("Tensor of rank k or more.")
    Index = Input("int32 or int64 [..., k].")
    Updates = Input("Leading dims of Index, then the dims of X after the first k.")
    Out = Output("Shape and LoD of X.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, index = ctx.dim("X"), ctx.dim("Index")
        ctx.require(
            len(index) > 0 and index[-1] <= len(dims),
            f"Index has shape {list(index)} but X {list(dims)}; expected a last dim of at most {len(dims)}",
        )
        if index[-1] >= 0:
            expected = (*index[:-1], *dims[index[-1] :])
            ctx.require_dims("Updates", expected, why=f"for Index {list(index)} and X {list(dims)}")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class ScatterNdAddGrad(
    GradOpDef, of=ScatterNdAdd, reads="Index", shape_of="Updates", grads_of="X? Updates?", like="Out@GRAD"
):
    """X@GRAD is Out@GRAD; Updates@GRAD holds its parts at Index."""


class ShardIndex(OpDef, type="shard_index"):
    r"""$$Out = X \bmod s \text{ where } \lfloor X / s \rfloor = shard\_id, \text{ else } ignore\_value,\quad
    s = \lceil index\_num / nshards \rceil$$"""

    X = Input("int32 or int64 [..., 1], at least 0 and below index_num.")
    Out = Output("Shape and LoD of X.")
    index_num = Attr(REQUIRED, "How many indices there are.", type=AttrType.INT).at_least(1)
    nshards = Attr(REQUIRED, "How many shards there are.", type=AttrType.INT).at_least(1)
    shard_id = Attr(REQUIRED, "Which shard this is.", type=AttrType.INT).at_least(0)
    ignore_value = Attr(-1, "What stands for an index of another shard.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, shard, shards = ctx.dim("X"), ctx.attr("shard_id"), ctx.attr("nshards")
        ctx.require(shard < shards, f"shard_id is {shard} and nshards {shards}; expected a shard_id below nshards")
        ctx.require(len(dims) >= 2 and dims[-1] in (1, -1), f"X has shape {list(dims)}; expected [..., 1]")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class SimilarityFocus(OpDef, type="similarity_focus"):
    r"""A mask of the greatest elements of slices of X, one for each row and column:

    each slice $T = X_{:, \dots, index, \dots}$ along `axis` is searched for its greatest element whose row and column
    are free yet, until rows or columns run out. Out is 1 at these places along all of `axis`, for any of the slices,
    else 0.
    """

    X = Input("[N, A, B, C]")
    Out = Output("Shape of X; 0 or 1.")
    axis = Attr(REQUIRED, "Dim of the slices: 1, 2 or 3.", type=AttrType.INT).in_set((1, 2, 3))
    indexes = Attr(REQUIRED, "Which slices.", type=AttrType.INTS)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, indexes = ctx.require_rank("X", 4), ctx.attr("indexes")
        size = dims[ctx.attr("axis")]
        fits = len(indexes) > 0 and all(0 <= i and (size < 0 or i < size) for i in indexes)
        ctx.require(fits, f"indexes is {list(indexes)} but X has shape {list(dims)}; expected places below {size}")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")


class Where(OpDef, type="where"):
    r"""$$Out_i = X_i$$ where $$Condition_i$$, else $$Y_i$$."""

    Condition = Input("bool, shape of X.")
    X = Input("Tensor of any shape.")
    Y = Input("Shape and type of X.")
    Out = Output("Shape and LoD of X.")
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")
    sbp = elementwise(("Condition", "X", "Y"), ("Out",), linear=(("X", "Y"),))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("X", "Y")
        ctx.same_dims("Condition", "X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))


class WhereGrad(GradOpDef, of=Where, reads="Condition", shape_of="X Y", grads_of="X? Y?"):
    """X@GRAD is Out@GRAD where Condition is true, else 0; Y@GRAD the other way round."""


class WhereIndex(OpDef, type="where_index"):
    r"""$$Out = (i : Condition_i \ne 0)$$: the places, [number of them, rank], in row-major order."""

    Condition = Input("Tensor of any shape and type.")
    Out = Output("int64 [number of places, rank of Condition]")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (-1, len(ctx.dim("Condition"))))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int64")
