"""Definitions of ops for sums and other reductions over ranks."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, InferShapeContext, Input

from oprack_collective.ops._attrs import (
    MODEL_PARALLEL,
    OF_MODEL_PARALLEL,
    ON_CALC_STREAM,
    REDUCE_TYPE,
    RING_ID,
    USE_CALC_STREAM,
)
from oprack_collective.ops._like import Like
from oprack_collective.ops._small_like import SmallLike, SmallRows


class AllReduce(SmallLike, type="all_reduce"):
    r"""$$out = \sum_r x_r$$ over the ranks r of the ring, on each of them; or another reduction than the sum."""

    ring_id = RING_ID
    reduce_type = REDUCE_TYPE


class CAllreduceMax(Like, type="c_allreduce_max"):
    r"""$$Out = \max_r X_r$$ over the ranks r of the ring, on each of them."""

    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    use_model_parallel = MODEL_PARALLEL
    inplace = {"X": "Out"}


class CAllreduceMin(Like, type="c_allreduce_min"):
    r"""$$Out = \min_r X_r$$ over the ranks r of the ring, on each of them."""

    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    use_model_parallel = MODEL_PARALLEL
    inplace = {"X": "Out"}


class CAllreduceProd(Like, type="c_allreduce_prod"):
    r"""$$Out = \prod_r X_r$$ over the ranks r of the ring, on each of them."""

    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    use_model_parallel = MODEL_PARALLEL
    inplace = {"X": "Out"}


class CAllreduceSum(Like, type="c_allreduce_sum"):
    r"""$$Out = \sum_r X_r$$ over the ranks r of the ring, on each; of SelectedRows the rows of all ranks."""

    Cond = Input("Paddle: whether to reduce; not read.", dispensable=True)
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    use_model_parallel = MODEL_PARALLEL
    inplace = {"X": "Out"}


class CIdentity(Like, type="c_identity"):
    r"""$$Out = X$$, a copy. Ranks compute parts of what follows, so X@GRAD is the sum of Out@GRAD over them."""

    ring_id = RING_ID
    use_calc_stream = ON_CALC_STREAM
    use_model_parallel = OF_MODEL_PARALLEL

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {k: v for k, v in fwd.attrs.items() if k in ("ring_id", "use_calc_stream", "use_model_parallel")}
        return GradOp("c_allreduce_sum", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)


class CReduceMax(Like, type="c_reduce_max"):
    r"""$$Out = \max_r X_r$$ over the ranks r of the ring, on the rank `root_id`; on the others Out is X."""

    ring_id = RING_ID
    root_id = Attr(0, "The rank that gets the result.")
    use_calc_stream = USE_CALC_STREAM


class CReduceMin(Like, type="c_reduce_min"):
    r"""$$Out = \min_r X_r$$ over the ranks r of the ring, on the rank `root_id`; on the others Out is X."""

    ring_id = RING_ID
    root_id = Attr(0, "The rank that gets the result.")
    use_calc_stream = USE_CALC_STREAM


class CReduceProd(Like, type="c_reduce_prod"):
    r"""$$Out = \prod_r X_r$$ over the ranks r of the ring, on the rank `root_id`; on the others Out is X."""

    ring_id = RING_ID
    root_id = Attr(0, "The rank that gets the result.")
    use_calc_stream = USE_CALC_STREAM


class CReduceSum(Like, type="c_reduce_sum"):
    r"""$$Out = \sum_r X_r$$ over the ranks r of the ring, on the rank `root_id`; on the others Out is X."""

    ring_id = RING_ID
    root_id = Attr(0, "The rank that gets the result.")
    use_calc_stream = USE_CALC_STREAM


class MpAllreduceSum(Like, type="mp_allreduce_sum"):
    r"""$$Out = \sum_r X_r$$ over the ranks r of the ring. What follows is the same on each, so X@GRAD is Out@GRAD."""

    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    inplace = {"X": "Out"}

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {k: v for k, v in fwd.attrs.items() if k in ("ring_id", "use_calc_stream")}
        return GradOp("c_identity", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)


class Reduce(SmallLike, type="reduce"):
    r"""$$out = \sum_r x_r$$ over the ring, or another reduction, on the rank root_id; elsewhere out is x."""

    ring_id = RING_ID
    root_id = Attr(0, "The rank that gets the result.")
    reduce_type = REDUCE_TYPE


class ReduceScatter(SmallRows, type="reduce_scatter"):
    r"""$$out = (\sum_r x_r)_{rank}$$: of the sum over the ranks of the ring, this rank's part of the rows."""

    nranks = Attr(1, "Number of ranks of the ring.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, n = ctx.dim("x"), ctx.attr("nranks")
        fits = bool(dims) and n > 0 and (dims[0] < 0 or dims[0] % n == 0)
        ctx.require(fits, f"x has shape {list(dims)}; expected a number of rows that {n} ranks can share")
        ctx.set_dim("out", (dims[0] // n if dims[0] >= 0 else -1, *dims[1:]))
