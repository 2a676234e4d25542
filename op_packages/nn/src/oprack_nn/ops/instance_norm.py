"""instance_norm and its gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOp, GradOpDef, OpDef, OpVersion, dtype_of

from oprack_nn.ops._norm import norm_types


class _Attrs(OpDef):
    epsilon = Attr(1e-5, "Added to the variance.").between(0.0, 0.001)


class InstanceNorm(_Attrs, type="instance_norm"):
    r"""$$Y = Scale \frac{X - \mu}{\sqrt{\sigma^2 + epsilon}} + Bias$$

    mu and sigma^2 are the mean and biased variance over the positions of one channel of one sample.
    """

    X = op.Input("[N, C, ...], rank 2 to 5.")
    Scale = op.Input("[C]; 1 when absent.", dispensable=True)
    Bias = op.Input("[C]; 0 when absent.", dispensable=True)
    Y = op.Output("Shape of X.")
    SavedMean = op.Output("[N C].", intermediate=True, extra=True)
    SavedVariance = op.Output("[N C], 1 / sqrt(variance + epsilon).", intermediate=True, extra=True)
    expected_kernel_type = dtype_of("X")
    versions = OpVersion("instance_norm").checkpoint(
        "Scale and Bias may be absent.", ("modify_attr", "Bias", True), ("modify_attr", "Scale", True)
    )
    infer_var_type = norm_types({}, "SavedMean", "SavedVariance")

    def infer_shape(ctx):
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

    def make_grad(fwd):
        return GradOp(
            "instance_norm_grad",
            X=fwd.input("X"),
            Scale=fwd.input("Scale"),
            SavedMean=fwd.output("SavedMean"),
            SavedVariance=fwd.output("SavedVariance"),
            Y_grad=fwd.output_grad("Y"),
            X_grad=fwd.input_grad("X"),
            Scale_grad=fwd.input_grad("Scale"),
            Bias_grad=fwd.input_grad("Bias"),
            attrs=fwd.attrs,
        )


class InstanceNormGrad(_Attrs, GradOpDef, type="instance_norm_grad"):
    """As batch_norm_grad, the means over one channel of one sample; Scale@GRAD and Bias@GRAD are sums per channel."""

    X = op.Input("X of the forward op.")
    Scale = op.Input("Scale of the forward op.", dispensable=True)
    SavedMean = op.Input("[N C].")
    SavedVariance = op.Input("[N C], 1 / sqrt(variance + epsilon).")
    Y_grad = op.Input("Shape of X.")
    X_grad = op.Output("Shape of X.", dispensable=True)
    Scale_grad = op.Output("[C].", dispensable=True)
    Bias_grad = op.Output("[C].", dispensable=True)
    expected_kernel_type = dtype_of("X")
    infer_var_type = norm_types({"Scale@GRAD": "Scale", "Bias@GRAD": "Scale"})

    def infer_shape(ctx):
        dims = ctx.dim("X")
        ctx.set_dim("X@GRAD", dims)
        ctx.share_lod("X", "X@GRAD")
        ctx.set_dim("Scale@GRAD", dims[1:2])
        ctx.set_dim("Bias@GRAD", dims[1:2])

    def make_grad(fwd):
        return GradOp(
            "instance_norm_double_grad",
            x=fwd.input("X"),
            fwd_scale=fwd.input("Scale"),
            saved_mean=fwd.input("SavedMean"),
            saved_variance=fwd.input("SavedVariance"),
            grad_y=fwd.input("Y@GRAD"),
            grad_x_grad=fwd.output_grad("X@GRAD"),
            grad_scale_grad=fwd.output_grad("Scale@GRAD") if fwd.has_output("Scale@GRAD") else None,
            grad_bias_grad=fwd.output_grad("Bias@GRAD") if fwd.has_output("Bias@GRAD") else None,
            x_grad=fwd.input_grad("X"),
            fwd_scale_grad=fwd.input_grad("Scale"),
            grad_y_grad=fwd.input_grad("Y@GRAD"),
            attrs=fwd.attrs,
        )


class InstanceNormDoubleGrad(_Attrs, GradOpDef, type="instance_norm_double_grad"):
    """Gradient of instance_norm_grad by X, Scale and Y@GRAD."""

    x = op.Input("X of the forward op.")
    fwd_scale = op.Input("Scale of the forward op.", dispensable=True)
    saved_mean = op.Input("[N C].")
    saved_variance = op.Input("[N C], 1 / sqrt(variance + epsilon).")
    grad_y = op.Input("Y@GRAD of instance_norm_grad.")
    grad_x_grad = op.Input("Gradient of X@GRAD.", dispensable=True)
    grad_scale_grad = op.Input("Gradient of Scale@GRAD.", dispensable=True)
    grad_bias_grad = op.Input("Gradient of Bias@GRAD.", dispensable=True)
    x_grad = op.Output("Shape of X.", dispensable=True)
    fwd_scale_grad = op.Output("[C].", dispensable=True)
    grad_y_grad = op.Output("Shape of X.", dispensable=True)
    expected_kernel_type = dtype_of("x")
    infer_var_type = norm_types({"fwd_scale_grad": "fwd_scale"}, first="x")

    def infer_shape(ctx):
        dims = ctx.dim("x")
        ctx.set_dim("x@GRAD", dims)
        ctx.set_dim("fwd_scale@GRAD", dims[1:2])
        ctx.set_dim("grad_y@GRAD", ctx.dim("grad_y"))
