"""Ops that replace a tensor by random numbers in its shape, and whose gradient is 0."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output
from oprack.op.families import like

SEED = Attr(0, "Seed of this op; 0 takes that of the program.")


class DrawLike(OpDef):
    """Random numbers in the shape of X."""

    X = Input("Gives shape and type; its values are replaced.")
    Out = Output("Shape, type and LoD of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("Out", "X")])


class ZeroGrad(GradOpDef, like="Out@GRAD"):
    """Gradient of numbers that do not depend on the input."""
