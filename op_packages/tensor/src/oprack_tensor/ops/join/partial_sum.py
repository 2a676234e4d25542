"""partial_sum and its gradient."""

from __future__ import annotations

from oprack.op import InferShapeContext, Output
from oprack.op.families import USE_MKLDNN

from oprack_tensor.ops.join._partial import LENGTH, START_INDEX, Partial, PartialGrad, partial_dims


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
