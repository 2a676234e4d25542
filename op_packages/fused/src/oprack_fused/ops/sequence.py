"""Definitions of chains of sequence ops."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType, VarType

from oprack_fused.ops._shapes import dense_dims

# Pooled sequences side by side.
AXIS = Attr(1, "Always 1.").in_set({1})


class PooledConcat(OpDef):
    """sequence_pool of each X, and concat."""

    X = Input("[N, M] with LoD, each; as many sequences in all.", duplicable=True)
    Out = Output("[number of sequences, columns of all X], each row a sequence.")
    pooltype = Attr("SUM", "SUM, AVERAGE or SQRT, as sequence_pool has it.").in_set({"SUM", "AVERAGE", "SQRT"})

    def infer_shape(ctx: InferShapeContext) -> None:
        columns = 0
        for i in range(ctx.input_count("X")):
            ctx.require_lod("X", 1, i)
            dims = ctx.dim("X", i)
            ctx.require(len(dims) == 2, f"X[{i}] has shape {list(dims)}; expected a matrix")
            columns = -1 if -1 in (columns, dims[1]) else columns + dims[1]
        ctx.set_dim("Out", (-1, columns))
        ctx.set_lod_level("Out", 1)


# fused_embedding_seq_pool and its gradient.
class FusedEmbeddingSeqPool(OpDef, type="fused_embedding_seq_pool"):
    r"""$$Out_s = \sum_{i \in s} W_{Ids_i}$$ lookup_table and sequence_pool."""

    W = Input("[V, D].")
    Ids = Input("int64 [N, 1] with LoD.")
    Out = Output("[number of sequences, D].")
    combiner = Attr("sum", "How rows of a sequence are joined.").in_set({"sum"})
    padding_idx = Attr(-1, "The id whose row is zeros; -1: none.", type=AttrType.LONG)
    grad_inplace = Attr(False, "Paddle: the gradient takes the place of W.")
    is_sparse = Attr(False, "The gradient of W is SelectedRows.")
    compute_shape = Attr(
        True, "Paddle: shapes are worked out as it runs.", name="@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@"
    )
    expected_kernel_type = dtype_of("W")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("Ids")
        size, ids = ctx.require_rank("W", 2)[1], ctx.require_rank("Ids", 2)
        ctx.require_dims("Ids", (ids[0], 1), why="one id in each row")
        ctx.set_dim("Out", (-1, size))


class FusedEmbeddingSeqPoolGrad(GradOpDef, of=FusedEmbeddingSeqPool, reads="W Ids", shape_of="W", grads_of="W"):
    r"""$$W@GRAD_v = \sum_{Ids_i = v} Out@GRAD_{s(i)}$$ with nothing for the row of `padding_idx`."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("W@GRAD", VarType.SELECTED_ROWS if ctx.attr("is_sparse") else VarType.LOD_TENSOR)
        ctx.set_dtype("W@GRAD", ctx.dtype("Out@GRAD"))


class FusionSeqconvEltaddRelu(OpDef, type="fusion_seqconv_eltadd_relu"):
    r"""$$Out_i = \max(0, [X_{i+start}, \dots, X_{i+start+length-1}]\,Filter + Bias)$$

    sequence_conv, elementwise_add and relu; rows beyond a sequence are zeros.
    """

    X = Input("[N, M] with LoD.")
    Filter = Input("[contextLength M, K].")
    Bias = Input("[1, K], or [K].")
    Out = Output("[N, K], LoD of X.")
    ColMat = Output("Paddle's buffer of windows; empty.", intermediate=True)
    contextLength = Attr(REQUIRED, "Rows of a window.", type=AttrType.INT).greater_than(0)
    contextStart = Attr(0, "Where a window begins, seen from its row.")
    contextStride = Attr(1, "Always 1.").in_set({1})

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        (rows, columns), length = ctx.require_rank("X", 2), ctx.attr("contextLength")
        filters = ctx.require_rank("Filter", 2)
        expected = -1 if columns < 0 else length * columns
        ctx.require_dims("Filter", (expected, filters[1]), why=f"windows of {length} rows of X")
        ctx.require(
            tuple(ctx.dim("Bias")) in ((1, filters[1]), (filters[1],)) or -1 in (*ctx.dim("Bias"), filters[1]),
            f"Bias has shape {list(ctx.dim('Bias'))}; expected [1, {filters[1]}], a number for each column of Filter",
        )
        ctx.set_dim("Out", (rows, filters[1]))
        ctx.set_dim("ColMat", (0,))
        ctx.share_lod("X", "Out")


class FusionSeqexpandConcatFc(OpDef, type="fusion_seqexpand_concat_fc"):
    r"""$$Out_i = a([X^0_i, X^1_{s(i)}, X^2_{s(i)}, \dots]\,FCWeight + FCBias)$$ for row $i$ of sequence $s(i)$.

    sequence_expand, concat and fc.
    """

    X = Input("First [N, M] with LoD; the others have one row for each of its sequences.", duplicable=True)
    FCWeight = Input("[columns of all X, K].")
    FCBias = Input("[1, K], or [K].", dispensable=True)
    Out = Output("[N, K], LoD of the first X.")
    FCOut = Output("Paddle's buffer; empty.", intermediate=True)
    fc_activation = Attr("identity", "Type of the activation's op.").in_set({"identity", "relu", "sigmoid", "tanh"})

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        dims = [tuple(d) for d in ctx.dims("X")]
        ctx.require(
            len(dims) > 1 and all(len(d) == 2 for d in dims),
            f"X has shapes {[list(d) for d in dims]}; expected two matrices at least",
        )
        columns = -1 if any(d[1] < 0 for d in dims) else sum(d[1] for d in dims)
        bias = tuple(ctx.dim("FCBias")) if ctx.has_input("FCBias") else None
        ctx.set_dim("Out", dense_dims(ctx, (dims[0][0], columns), tuple(ctx.dim("FCWeight")), bias))
        ctx.set_dim("FCOut", (0,))
        ctx.share_lod("X", "Out")


class FusionSeqpoolConcat(PooledConcat, type="fusion_seqpool_concat"):
    r"""$$Out_s = [\operatorname{pool}_s X^0, \operatorname{pool}_s X^1, \dots]$$ sequence_pool and concat."""

    axis = AXIS


class FusionSeqpoolCvmConcat(PooledConcat, type="fusion_seqpool_cvm_concat"):
    r"""$$Out_s = [v(\operatorname{pool}_s X^0), v(\operatorname{pool}_s X^1), \dots]$$

    $v$ takes the first two columns, shows and clicks, to $\ln(x_0 + 1)$ and $\ln(x_1 + 1) - \ln(x_0 + 1)$.
    """

    CVM = Input("[number of sequences, 2]; not read.")
    use_cvm = Attr(True, "Always true.").in_set({True})
    axis = AXIS
    expected_kernel_type = dtype_of("X")
