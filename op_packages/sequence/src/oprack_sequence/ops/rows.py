"""The rows of each sequence: joined, cut, reversed, counted, weighed."""

from __future__ import annotations

from typing import Any

from oprack.op import (
    REQUIRED,
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.sbp import leading, sequences
from oprack.types import AttrType
from oprack_math.composition import composed

from oprack_sequence.ops._infer import same_as, same_dim


class AddPositionEncoding(OpDef, type="add_position_encoding"):
    r"""$$Out = \alpha X + \beta P$$ with the sinusoids of a row's position t in its sequence:

    $P_{t,k} = \sin(t / 10000^{k / (h - 1)})$ and $P_{t,k+h} = \cos(t / 10000^{k / (h - 1)})$ for k < h = D / 2
    (for D = 2 the angle is t / 10000).
    """

    X = Input("[B, T, D], or [N, D] with LoD; D is even.")
    Out = Output("Shape and LoD of X.")
    alpha = Attr(1.0, "Factor of X.")
    beta = Attr(1.0, "Factor of the sinusoids.")
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dim = ctx.require_rank("X", 2, 3)
        if len(dim) == 2:
            ctx.require_lod("X")
        ctx.require(dim[-1] < 0 or dim[-1] % 2 == 0, f"X has {dim[-1]} columns; expected an even number")
        same_as(ctx, "X", "Out")


class AddPositionEncodingGrad(GradOpDef, of=AddPositionEncoding, like="Out@GRAD"):
    """alpha times the gradient."""


# filter_by_instag (Paddle 1.x) and its gradient: all of the ops but their kernels.
class FilterByInstag(OpDef, type="filter_by_instag"):
    r"""$$Out = (Ins^{(i)} : Ins\_tag^{(i)} \cap Filter\_tag \ne \emptyset)$$: the instances that carry a tag that is
    asked for.

    Where none does, Out is one row of out_val_if_empty with LossWeight 0, so that a loss over Out is 0.
    """

    Ins = Input("[N, D]; an instance is a sequence, or a row without is_lod.")
    Ins_tag = Input("int64 tags of each instance, with LoD.")
    Filter_tag = Input("int64, the tags that are asked for.")
    Out = Output("[rows, D] with LoD.")
    LossWeight = Output("1 for each instance of Out [instances, 1]; 0 where there is none.", stop_gradient=True)
    IndexMap = Output("int64 [instances, 3]: first row in Out, first row in Ins, rows.")
    is_lod = Attr(REQUIRED, "Whether an instance is a sequence.", type=AttrType.BOOLEAN)
    out_val_if_empty = Attr(0, "Value of Out where no instance is left.", type=AttrType.LONG)
    expected_kernel_type = dtype_of("Ins")

    def infer_shape(ctx: InferShapeContext) -> None:
        if ctx.attr("is_lod"):
            ctx.require_lod("Ins")
        ctx.require_lod("Ins_tag")
        dims = ctx.require_rank("Ins", 2)
        for slot, width in (("Out", dims[1]), ("LossWeight", 1), ("IndexMap", 3)):
            ctx.set_dim(slot, (-1, width))
            ctx.set_lod_level(slot, 1)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("Ins"))
        ctx.set_dtype("LossWeight", "float32")
        ctx.set_dtype("IndexMap", "int64")


class FilterByInstagGrad(
    GradOpDef, of=FilterByInstag, reads="IndexMap LossWeight Ins Out@GRAD", shape_of="Ins", grads_of="Ins"
):
    """Out@GRAD in the rows that were kept, 0 in the others."""

    expected_kernel_type = dtype_of("Out@GRAD")


class PyramidHash(OpDef, type="pyramid_hash"):
    r"""$$Out_t = (W_{h_0(t)}, \dots, W_{h_0(t) + r - 1}, W_{h_r(t)}, \dots), \; h_j(t) = \operatorname{XXH32}_j(t)
    \bmod space\_len$$ with r = rand_len, for the terms t: 2 to pyramid_layer ids in a row, as float32

    Embeddings of word n-grams that share one table by hashing (Pyramid hash embedding, Chen et al., 2019): num_emb
    numbers, taken r at a time. Terms stand by their length, then by their place; a sequence without one gives a row of
    zeros. With use_filter a term has to be in the Bloom filter WhiteList and not in BlackList, where there are such. In
    training a term is dropped by chance, and otherwise Out is multiplied by drop_out_percent.
    """

    X = Input("Ids [N, 1], int32, with LoD.")
    W = Input("Numbers of which embeddings are made [space_len + rand_len, 1].")
    WhiteList = Input("A Bloom filter [white_list_len, 1]: four uint64 (mark, bits, hashes, count), then the bits.")
    BlackList = Input("A Bloom filter [black_list_len, 1], as WhiteList.")
    Out = Output("[terms, num_emb] with the LoD of its sequences.")
    DropPos = Output("1 for each possible term that is left, int32 [N pyramid_layer, 1]; 0 behind the last.")
    X_Temp_Out = Output("X as float32.", intermediate=True)
    num_emb = Attr(0, "Width of an embedding, a multiple of rand_len.").at_least(0)
    space_len = Attr(0, "Places at which parts of an embedding begin.").at_least(0)
    pyramid_layer = Attr(2, "Ids of the longest term.").at_least(2)
    rand_len = Attr(0, "Numbers that are taken at once.").at_least(0)
    drop_out_percent = Attr(0.0, "Share of terms that training drops; what Out is multiplied by otherwise.").at_least(0)
    is_training = Attr(0, "Not 0 in training.").at_least(0)
    use_filter = Attr(True, "Ask the lists.")
    white_list_len = Attr(0, "Length of WhiteList; 0: none.").at_least(0)
    black_list_len = Attr(0, "Length of BlackList; 0: none.").at_least(0)
    seed = Attr(0, "Seed of the draws.").at_least(0)
    lr = Attr(0.0, "Paddle: the step by which its gradient op changes W itself.").at_least(0)
    distribute_update_vars = Attr("", "Paddle: parameters that its transpiler sends to servers.")
    expected_kernel_type = dtype_of("W")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        dims = ctx.require_rank("X", 2)
        width, space, part = (ctx.attr(name) for name in ("num_emb", "space_len", "rand_len"))
        ctx.require(
            space > 0 and part > 0 and width % part == 0,
            f"num_emb is {width}, space_len {space} and rand_len {part}; expected space_len and rand_len above 0, and "
            "num_emb as a multiple of rand_len",
        )
        ctx.require_dims("W", (space + part, 1), why="space_len + rand_len numbers")
        for slot, name in (("WhiteList", "white_list_len"), ("BlackList", "black_list_len")):
            if ctx.attr(name):
                ctx.require(ctx.has_input(slot), f"{name} is {ctx.attr(name)}, and {slot} is absent")
                ctx.require_dims(slot, (ctx.attr(name), 1), why=name)
        ctx.set_dim("Out", (-1, width))
        ctx.set_dim("DropPos", (-1, 1))
        ctx.set_dim("X_Temp_Out", dims)
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("W"))
        ctx.set_dtype("DropPos", "int32")
        ctx.set_dtype("X_Temp_Out", "float32")


class PyramidHashGrad(
    GradOpDef, of=PyramidHash, reads="X W DropPos X_Temp_Out Out@GRAD", shape_of="W", grads_of="X? W?", lod=False
):
    """W@GRAD sums Out@GRAD at the places that were read; ids have no gradient, so X@GRAD is not written.

    Paddle's op has no W@GRAD: it takes a step of lr against it in W itself.
    """

    expected_kernel_type = dtype_of("Out@GRAD")


class SequenceConcat(OpDef, type="sequence_concat"):
    r"""$$Out^{(i)} = [X_1^{(i)}; X_2^{(i)}; \ldots]$$: sequence i of every input, one after the other."""

    X = Input("Tensors [N_k, ...] with LoD of the same number of sequences.", duplicable=True)
    Out = Output("[sum of N_k, ...]; outer LoD levels are those of the first input.")
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        for i in range(ctx.input_count("X")):
            ctx.require_lod("X", i=i)
        dims = ctx.dims("X")
        rows = [d[0] for d in dims]
        ctx.set_dim("Out", (-1 if min(rows) < 0 else sum(rows), *dims[0][1:]))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))


class SequenceConcatGrad(GradOpDef, of=SequenceConcat, shape_of="X", linear=True):
    """Each input takes back its own rows."""


class SequenceEnumerate(OpDef, type="sequence_enumerate"):
    r"""$$Out_{i,j} = X_{i + j}$$ while row i + j is of the same sequence as row i, else pad_value; j < win_size."""

    X = Input("Ids [N, 1] with LoD.")
    Out = Output("[N, win_size] with the LoD of X.")
    win_size = Attr(REQUIRED, "Ids of a window.", type=AttrType.INT).at_least(1)
    pad_value = Attr(0, "Stands for ids past the end.")
    all_kernels_must_compute_runtime_shape = Attr(
        True, "Has no effect.", name="@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@"
    )
    make_grad = empty_grad
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        ctx.set_dim("Out", (ctx.dim("X")[0], ctx.attr("win_size")))
        ctx.share_lod("X", "Out")


class SequenceErase(OpDef, type="sequence_erase"):
    r"""$$Out^{(i)} = (x \in X^{(i)} : x \notin tokens)$$: sequences get shorter, their number stays."""

    X = Input("Ids [N, 1] with LoD; the innermost level gets shorter.")
    Out = Output("Ids [rows left, 1] with LoD.")
    tokens = Attr(REQUIRED, "Ids to drop.", type=AttrType.INTS)
    make_grad = empty_grad
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))


class SequenceReshape(OpDef, type="sequence_reshape"):
    r"""$$Out^{(i)}_{r,c} = x^{(i)}_{r D' + c}$$, x the elements of a sequence in their order and D' = new_dim."""

    X = Input("[N, D] with LoD; length times D of each sequence is a multiple of new_dim.")
    Out = Output("[N D / new_dim, new_dim] with LoD.")
    new_dim = Attr(REQUIRED, "Elements of a row of Out.", type=AttrType.INT).at_least(1)
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        rows, width = ctx.require_rank("X", 2)
        new_dim = ctx.attr("new_dim")
        ctx.set_dim("Out", (-1 if rows < 0 or width < 0 else rows * width // new_dim, new_dim))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))


class SequenceReshapeGrad(GradOpDef, of=SequenceReshape, reads="X", linear=True):
    """The gradient in the shape of X."""


class SequenceReverse(OpDef, type="sequence_reverse"):
    r"""$$Y_{o_i + t} = X_{o_{i+1} - 1 - t}$$, o_i the first row of sequence i; it is its own gradient."""

    X = Input("[N, ...] with LoD.")
    Y = Output("Shape and LoD of X.")
    sbp = sequences(("X",), ("Y",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        same_as(ctx, "X", "Y")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("sequence_reverse", X=fwd.output_grad("Y"), Y=fwd.input_grad("X"), attrs=fwd.attrs)


class SequenceScatter(OpDef, type="sequence_scatter"):
    r"""$$Out_{i,c} = X_{i,c} + \sum_{r \in Ids^{(i)}, Ids_r = c} Updates_r$$: sequence i of Updates is added to row i
    of X.
    """

    X = Input("[number of sequences, D].")
    Ids = Input("Columns [N, 1], int32 or int64, with LoD; a column may occur again.")
    Updates = Input("[N, 1] with the LoD of Ids.")
    Out = Output("Shape of X.")
    expected_kernel_type = dtype_of("X")
    sbp = sequences(("X", "Ids", "Updates"), ("Out",), ("X", "Out"), same_lod=("Ids", "Updates"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("Ids")
        same_dim(ctx, "X", "Out")


class SequenceScatterGrad(
    GradOpDef,
    of=SequenceScatter,
    reads="Ids",
    shape_of="Updates",
    grads_of="X Updates",
    like="Out@GRAD",
    lod=False,
    linear=True,
):
    """X takes the gradient as it is, each update the element that it was added to."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("X@GRAD", "Updates@GRAD"):
            if ctx.has_output(slot):
                ctx.set_dtype(slot, ctx.dtype("Out@GRAD"))


class SequenceSelect(OpDef, type="sequence_select"):
    r"""$$Out^{(i)} = X^{(Index_i)}$$: whole sequences by their numbers, in any order, more than once or not at all.

    Of several levels the outermost is chosen from, with all that lies in it.
    """

    X = Input("[N, ...] with LoD.")
    Index = Input("Numbers of sequences, int32 or int64, [sequences of Out] or [sequences of Out, 1].")
    Out = Output("[rows, ...] with as many LoD levels as X.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        ctx.require_rank("Index", 1, 2)
        ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))


class SequenceSelectGrad(GradOpDef, of=SequenceSelect, reads="Index", shape_of="X", grads_of="X", linear=True):
    """Each row takes the sum of the gradients of its copies."""


class SequenceSlice(OpDef, type="sequence_slice"):
    r"""$$Out^{(i)}_t = X^{(i)}_{Offset_i + t}, \quad 0 \le t < Length_i$$"""

    X = Input("[N, ...] with LoD.")
    Offset = Input("Ids [number of sequences, 1].")
    Length = Input("Ids [number of sequences, 1]; Offset + Length stays within the sequence.")
    Out = Output("[sum of Length, ...] with LoD.")
    expected_kernel_type = dtype_of("X")
    sbp = sequences(("X", "Offset", "Length"), ("Out",), ("Offset", "Length"))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))


class SequenceSliceGrad(GradOpDef, of=SequenceSlice, reads="Offset Length", shape_of="X", grads_of="X", linear=True):
    """Puts the rows back at their places; the others get zero."""


class SequenceSoftmax(OpDef, type="sequence_softmax"):
    r"""Softmax over the rows of each sequence: $$Out_i = \frac{e^{X_i}}{\sum_{j \in seq(i)} e^{X_j}}$$

    Each column stands by itself. Paddle takes one.
    """

    X = Input("[N, ...] with LoD.")
    Out = Output("Shape and LoD of X.")
    use_cudnn = Attr(False, "Chooses a kernel library elsewhere.", extra=True)
    data_format = Attr("AnyLayout", "Has no effect.", extra=True)
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        same_as(ctx, "X", "Out")


class SequenceSoftmaxGrad(GradOpDef, of=SequenceSoftmax, reads="Out", shape_of="X"):
    r"""$$\bar X_i = Out_i (\bar{Out}_i - \sum_{j \in seq(i)} Out_j \bar{Out}_j)$$"""

    @composed
    def make_grad(o: Any, Out: Any, Out_grad: Any) -> Any:
        product = Out_grad * Out
        sums = o.sequence_pool(X=product, pooltype="SUM", outputs=["Out"])
        return product - Out * o.sequence_expand_as(X=sums, Y=Out)
