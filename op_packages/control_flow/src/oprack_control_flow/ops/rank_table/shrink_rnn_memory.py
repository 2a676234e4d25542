"""shrink_rnn_memory: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output


class ShrinkRnnMemory(OpDef, type="shrink_rnn_memory"):
    r"""$$Out = X_{0 \ldots n - 1}, \quad n = |\{s : \ell_s > I\}|$$

    The states of the sequences that are longer than I, which come first in X.
    """

    X = Input("States, longest sequence first.")
    RankTable = Input("Rank table.")
    I = Input("One integer: the time step.")  # noqa: E741  the slot's name
    Out = Output("The first rows (or sequences) of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))


class ShrinkRnnMemoryGrad(GradOpDef, of=ShrinkRnnMemory, reads="X Out@GRAD?", grads_of="X"):
    """X@GRAD is Out@GRAD, and 0 for the rows that were left out."""
