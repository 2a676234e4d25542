"""Definitions of ops for data that moves between ranks."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType

from oprack_collective.ops._attrs import OF_MODEL_PARALLEL, ON_CALC_STREAM, RING_ID, USE_CALC_STREAM
from oprack_collective.ops._like import Like
from oprack_collective.ops._small_like import SmallLike, SmallRows


class AllGather(SmallRows, type="all_gather"):
    r"""$$out = [x_0, x_1, \dots]$$: the rows of all ranks of the ring, one after the other."""

    nranks = Attr(0, "Number of ranks of the ring.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("x"), ctx.attr("nranks")
        ctx.require(bool(dims), "x is 0-D; expected rows, which are joined")
        ctx.set_dim("out", (dims[0] * n if dims[0] >= 0 and n > 0 else -1, *dims[1:]))


class AllToAll(SmallLike, type="all_to_all"):
    r"""$$out = [x_{0, rank}, x_{1, rank}, \dots]$$: the parts of the rows that the ranks have for this one."""

    ring_id = RING_ID


class Alltoall(OpDef, type="alltoall"):
    r"""$$Out = [X_{0, rank}, X_{1, rank}, \dots]$$

    The rows are cut into a part for each rank of the ring, and the parts that all ranks have for this one are joined.
    """

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(bool(ctx.dim("X")), "X is 0-D; expected rows, a part of them for each rank")
        ctx.set_dim("Out", ctx.dim("X"))


class Broadcast(SmallLike, type="broadcast"):
    r"""$$out = x_{root}$$: on each rank of the ring what the rank `root` has."""

    ring_id = RING_ID
    root = Attr(0, "The rank whose x counts.")


class CAllgather(OpDef, type="c_allgather"):
    r"""$$Out = [X_0, X_1, \dots]$$: the rows of all ranks of the ring, one after the other."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    nranks = Attr(REQUIRED, "Number of ranks of the ring.", type=AttrType.INT)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        rows = dims[0] * ctx.attr("nranks") if dims and dims[0] >= 0 else -1
        ctx.set_dim("Out", (rows, *dims[1:]))


class CBroadcast(Like, type="c_broadcast"):
    r"""$$Out = X_{root}$$: on each rank of the ring what the rank `root` has."""

    ring_id = RING_ID
    root = Attr(0, "The rank whose X counts.")
    use_calc_stream = USE_CALC_STREAM


_SHARED = ("nranks", "rank", "ring_id", "use_calc_stream", "use_model_parallel")


class CConcat(OpDef, type="c_concat"):
    r"""$$Out = [X_0, X_1, \dots]$$ along the last dim: the columns of all ranks of the ring, side by side."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    rank = Attr(0, "This rank in the ring.")
    nranks = Attr(1, "Number of ranks of the ring.")
    ring_id = RING_ID
    use_calc_stream = ON_CALC_STREAM
    use_model_parallel = OF_MODEL_PARALLEL

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(bool(dims), "X is 0-D; expected a last dim along which ranks are joined")
        ctx.set_dim("Out", (*dims[:-1], dims[-1] * ctx.attr("nranks") if dims[-1] >= 0 else -1))

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {k: v for k, v in fwd.attrs.items() if k in _SHARED}
        return GradOp("c_split", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)


class CReducescatter(OpDef, type="c_reducescatter"):
    r"""$$Out = (\sum_r X_r)_{rank}$$: of the sum over the ranks of the ring, this rank's part of the rows."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    ring_id = RING_ID
    nranks = Attr(1, "Number of ranks of the ring.")
    use_calc_stream = USE_CALC_STREAM
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("X"), ctx.attr("nranks")
        fits = bool(dims) and (dims[0] < 0 or dims[0] % n == 0)
        ctx.require(fits, f"X has shape {list(dims)}; expected a number of rows that {n} ranks can share")
        ctx.set_dim("Out", (dims[0] // n if dims[0] >= 0 else -1, *dims[1:]))


class CScatter(OpDef, type="c_scatter"):
    r"""$$Out = X_{root, rank}$$: this rank's part of the rows that the rank `root` has."""

    X = Input("Tensor of rank 1 or more; the same shape on every rank.")
    Out = Output("No LoD.")
    ring_id = RING_ID
    root = Attr(0, "The rank whose X counts.").at_least(0)
    nranks = Attr(0, "Number of ranks of the ring.")
    use_calc_stream = USE_CALC_STREAM
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("X"), ctx.attr("nranks")
        fits = bool(dims) and n > 0 and (dims[0] < 0 or dims[0] % n == 0)
        ctx.require(fits, f"X has shape {list(dims)}; expected a number of rows that {n} ranks can share")
        ctx.set_dim("Out", (dims[0] // n if dims[0] >= 0 else -1, *dims[1:]))


class CSplit(OpDef, type="c_split"):
    r"""$$Out = X_{\dots, rank}$$: this rank's part of the last dim, the same size on each rank of the ring."""

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    rank = Attr(0, "This rank in the ring.")
    nranks = Attr(1, "Number of ranks of the ring.")
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    use_model_parallel = OF_MODEL_PARALLEL

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("X"), ctx.attr("nranks")
        fits = bool(dims) and (dims[-1] < 0 or dims[-1] % n == 0)
        ctx.require(fits, f"X has shape {list(dims)}; expected a last dim that {n} ranks can share")
        ctx.set_dim("Out", (*dims[:-1], dims[-1] // n if dims[-1] >= 0 else -1))

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {k: v for k, v in fwd.attrs.items() if k in _SHARED}
        return GradOp("c_concat", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)


class DistConcat(SmallRows, type="dist_concat"):
    r"""$$out = [x_0, x_1, \dots]$$ along the last dim: the columns of all ranks of the ring, side by side."""

    nranks = Attr(1, "Number of ranks of the ring.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("x"), ctx.attr("nranks")
        ctx.require(bool(dims), "x is 0-D; expected a last dim along which ranks are joined")
        ctx.set_dim("out", (*dims[:-1], dims[-1] * n if dims[-1] >= 0 else -1))


class PartialAllgather(OpDef, type="partial_allgather"):
    r"""$$Out.flat = [X_0.flat_0, X_1.flat_1, \dots]$$

    Each rank of the ring has its part of X.flat, all of one size; Out has all of them.
    """

    X = Input("Tensor of rank 1 or more.")
    Out = Output("No LoD.")
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    nranks = Attr(REQUIRED, "Number of ranks of the ring.", type=AttrType.INT)
    rank = Attr(REQUIRED, "This rank in the ring.", type=AttrType.INT)
    inplace = {"X": "Out"}
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
