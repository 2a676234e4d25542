"""delete_var: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, empty_grad


class DeleteVar(OpDef, type="delete_var"):
    """Drops the values of variables, whose memory is then free."""

    X = Input("Variables of any kind.", duplicable=True)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""
