"""stright_throuth_estimator_grad, Paddle's name for the gradient of all fake quantization."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, GradOpDef, InferShapeContext, Input, Output
from oprack.op.families import like


class StraightThroughEstimatorGrad(GradOpDef, type="stright_throuth_estimator_grad"):
    r"""$$X@GRAD = Out@GRAD$$

    Rounding has the slope 0 nearly everywhere; for training it counts as the identity (Bengio, Léonard and Courville,
    "Estimating or propagating gradients through stochastic neurons", 2013).
    """

    Out_grad = Input("Gradient of what was quantized and restored.")
    X_grad = Output("The same.")
    inplace = {"Out@GRAD": "X@GRAD"}

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("X@GRAD", "Out@GRAD")])

    def make_grad(fwd: ForwardOp) -> GradOp:
        slots = {"Out@GRAD": fwd.output_grad("X@GRAD"), "X@GRAD": fwd.input_grad("Out@GRAD")}
        return GradOp("stright_throuth_estimator_grad", slots=slots)
