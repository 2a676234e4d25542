"""partial_concat and its gradient."""

from __future__ import annotations

from oprack.op import InferShapeContext, Output

from oprack_tensor.ops.join._partial import LENGTH, START_INDEX, Partial, PartialGrad, partial_dims


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
