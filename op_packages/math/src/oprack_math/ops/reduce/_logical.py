"""What reductions of truth values share."""

from __future__ import annotations

from oprack.op import InferVarTypeContext, Input, Output, empty_grad

from oprack_math.ops.reduce._by_tensor import ReduceByTensor


class LogicalReduce(ReduceByTensor):
    """A reduction of truth values."""

    X = Input("Tensor of any shape; anything but 0 is true.")
    Out = Output("bool, X's shape without the reduced dims; no LoD.")
    make_grad = empty_grad

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")
