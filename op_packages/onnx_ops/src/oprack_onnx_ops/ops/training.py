"""Steps of optimizers, as ONNX's preview of training has them: for several tensors at once."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, Output, dtype_of

from oprack_onnx_ops.ops._common import OnnxOp


class OnnxOptimizerStep(OnnxOp):
    """What the steps share. `inputs` are tensors, then their gradients, then their states of each sort."""

    R = Input("One number: the learning rate.")
    T = Input("int64: how many steps there were.")
    inputs = Input("Tensors, then gradients, then states.", duplicable=True)
    outputs = Output("New tensors, then new states.", duplicable=True)
    norm_coefficient = Attr(0.0, "Factor of the tensor that is added to its gradient.")
    expected_kernel_type = dtype_of("inputs")

    def infer_shape(ctx: InferShapeContext) -> None:
        groups = {"onnx_adam": 4}.get(ctx.op_type, 3)
        dims = ctx.dims("inputs")
        ctx.require(len(dims) % groups == 0, f"inputs has {len(dims)} tensors; expected a multiple of {groups}")
        count = len(dims) // groups
        ctx.set_dims("outputs", dims[:count] + dims[2 * count :])


class OnnxAdagrad(OnnxOptimizerStep, type="onnx_adagrad"):
    r"""$$h' = h + g^2, \quad x' = x - \frac{r}{1 + T \cdot decay} \cdot \frac{g}{\sqrt{h'} + \epsilon}$$"""

    decay_factor = Attr(0.0, "How the learning rate falls.")
    epsilon = Attr(1e-6, "Added to the root.")


class OnnxAdam(OnnxOptimizerStep, type="onnx_adam"):
    r"""$$x' = x - r' \frac{v'}{\sqrt{h'} + \epsilon}$$ with means v of gradients and h of their squares."""

    alpha = Attr(0.9, "Share of the mean before.")
    beta = Attr(0.999, "Share of the mean of squares before.")
    epsilon = Attr(1e-6, "Added to the root.")
    norm_coefficient_post = Attr(0.0, "Factor of the new tensor that is taken off it.")


class OnnxMomentum(OnnxOptimizerStep, type="onnx_momentum"):
    r"""$$v' = \alpha v + \beta g, \quad x' = x - r v'$$"""

    alpha = Attr(0.9, "Share of the momentum before.")
    beta = Attr(1.0, "Share of the gradient, from the second step on.")
    mode = Attr("standard", "standard or nesterov.").in_set(["standard", "nesterov"])
