"""instance_norm and its gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, InferShapeContext, OpDef, OpVersion, dtype_of
from oprack.op.sbp import leading

from oprack_nn.ops.norm import norm_types


class InstanceNorm(OpDef, type="instance_norm"):
    r"""$$Y = Scale \frac{X - \mu}{\sqrt{\sigma^2 + epsilon}} + Bias$$

    mu and sigma^2 are the mean and biased variance over the positions of one channel of one sample.
    """

    X = op.Input("[N, C, ...], rank 2 to 5.")
    Scale = op.Input("[C]; 1 when absent.", dispensable=True)
    Bias = op.Input("[C]; 0 when absent.", dispensable=True)
    Y = op.Output("Shape of X.")
    SavedMean = op.Output("[N C].", intermediate=True, extra=True)
    SavedVariance = op.Output("[N C], 1 / sqrt(variance + epsilon).", intermediate=True, extra=True)
    epsilon = Attr(1e-5, "Added to the variance.").between(0.0, 0.001)
    expected_kernel_type = dtype_of("X")
    versions = OpVersion("instance_norm").checkpoint(
        "Scale and Bias may be absent.", ("modify_input", "Bias", None), ("modify_input", "Scale", None)
    )
    infer_var_type = norm_types({}, "SavedMean", "SavedVariance")
    sbp = leading(("X",), ("Y",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 2, 3, 4, 5)
        for slot in ("Scale", "Bias"):
            if ctx.has_input(slot):
                got = ctx.dim(slot)
                ctx.require(
                    len(got) == 1 and (dims[1] < 0 or got[0] < 0 or got[0] == dims[1]),
                    f"{slot} has shape {list(got)}; expected [{dims[1]}], the channels of X {list(dims)}",
                )
        rows = -1 if -1 in dims[:2] else dims[0] * dims[1]
        ctx.set_dim("Y", dims)
        ctx.set_dim("SavedMean", (rows,))
        ctx.set_dim("SavedVariance", (rows,))
        ctx.share_lod("X", "Y")


class InstanceNormGrad(GradOpDef, of=InstanceNorm, reads="X Scale SavedMean SavedVariance", grads_of="X? Scale? Bias?"):
    """As batch_norm_grad, the means over one channel of one sample; Scale@GRAD and Bias@GRAD are sums per channel."""

    expected_kernel_type = dtype_of("X")
    infer_var_type = norm_types({"Scale@GRAD": "Scale", "Bias@GRAD": "Scale"})

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.set_dim("X@GRAD", dims)
        ctx.share_lod("X", "X@GRAD")
        ctx.set_dim("Scale@GRAD", dims[1:2])
        ctx.set_dim("Bias@GRAD", dims[1:2])


class InstanceNormDoubleGrad(
    GradOpDef,
    of=InstanceNormGrad,
    type="instance_norm_double_grad",
    reads="X Scale SavedMean SavedVariance Y@GRAD X@GRAD@GRAD? Scale@GRAD@GRAD? Bias@GRAD@GRAD?",
    grads_of="X? Scale? Y@GRAD?",
    names={
        "Scale": "fwd_scale",
        "Y@GRAD": "grad_y",
        "SavedMean": "saved_mean",
        "SavedVariance": "saved_variance",
        "X": "x",
        "Bias@GRAD": "grad_bias",
        "Scale@GRAD": "grad_scale",
        "X@GRAD": "grad_x",
    },
):
    """Gradient of instance_norm_grad by X, Scale and Y@GRAD."""

    expected_kernel_type = dtype_of("x")
    infer_var_type = norm_types({"fwd_scale_grad": "fwd_scale"}, first="x")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("x")
        ctx.set_dim("x@GRAD", dims)
        ctx.set_dim("fwd_scale@GRAD", dims[1:2])
        ctx.set_dim("grad_y@GRAD", ctx.dim("grad_y"))
