"""inplace_abn (Paddle 1.x) and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, GradOpDef, dtype_of

from oprack_nn.ops.norm.batch_norm import BatchNorm, batch_norm_dims, batch_norm_gradient


class InplaceAbn(BatchNorm, type="inplace_abn"):
    r"""$$Y = f(BN(X))$$ batch_norm and an activation f, whose result takes the memory of X

    f(x) is x, x or $$alpha \cdot x$$ below 0 (leaky_relu), or x or $$alpha (e^x - 1)$$ below 0 (elu). The gradient goes
    back from Y, so that X need not be kept (Rota Bulo et al., 2018): Scale may have no zeros, and alpha is positive.
    """

    activation = Attr("identity", "f.").in_set(("identity", "leaky_relu", "elu", ""))
    alpha = Attr(0.1, "What f does below 0.")
    use_sync_bn = Attr(False, "Paddle: statistics of all trainers.")
    inplace = {"X": "Y"}

    def make_grad(fwd: ForwardOp) -> GradOp:
        return batch_norm_gradient("inplace_abn_grad", fwd, source="Y")


class InplaceAbnGrad(
    GradOpDef,
    of=InplaceAbn,
    reads="Scale Bias Mean? Variance? SavedMean SavedVariance ReserveSpace? Y Y@GRAD",
    shape_of="ReserveSpace",
    grads_of="X? Scale? Bias?",
    like={"X": "Y"},
):
    r"""With $$z = f^{-1}(Y), \; \hat{x} = (z - Bias) / Scale$$ and $$g = Y@GRAD \cdot f'(z)$$: the gradient of
    batch_norm for g and x hat"""

    expected_kernel_type = dtype_of("Y")
    infer_shape = batch_norm_dims("Y")
