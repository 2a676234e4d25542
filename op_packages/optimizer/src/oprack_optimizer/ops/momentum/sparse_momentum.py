"""sparse_momentum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType

from oprack_optimizer.ops._update import (
    LEARNING_RATE,
    MASTER,
    MASTER_OUT,
    MULTI_PRECISION,
    PARAM,
    PARAM_OUT,
    infer_dtypes,
)

_UPDATES = {"Param": "ParamOut", "Velocity": "VelocityOut", "MasterParam": "MasterParamOut"}


class SparseMomentum(OpDef, type="sparse_momentum"):
    r"""$$g_r = \sum_{i : Index_i = r} Grad_i, \; VelocityOut = mu \cdot Velocity + g, \; ParamOut = Param -
    LearningRate \cdot VelocityOut$$

    As momentum, for the rows (or columns, with axis 1) of Param that Index lists; all others have a gradient of 0.
    """

    Param = PARAM
    Grad = Input("Gradients of the listed rows or columns.")
    Velocity = Input("Running sum of gradients, shape of Param.")
    Index = Input("Rows or columns that Grad holds [n].")
    Axis = Input("One int that overrides `axis`.", dispensable=True)
    LearningRate = LEARNING_RATE
    MasterParam = MASTER
    ParamOut = PARAM_OUT
    VelocityOut = Output("Updated Velocity.")
    MasterParamOut = MASTER_OUT
    mu = Attr(REQUIRED, "Share of the old velocity that is kept.", type=AttrType.FLOAT)
    use_nesterov = Attr(False, "Look ahead by one step.")
    regularization_method = Attr("", "l2_decay, or empty for none.").in_set(("", "l2_decay"))
    regularization_coeff = Attr(0.0, "Weight of the decay.")
    multi_precision = MULTI_PRECISION
    rescale_grad = Attr(1.0, "Factor of Grad.")
    axis = Attr(0, "0: Index lists rows. 1: columns.").in_set((0, 1))
    inplace = _UPDATES
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Param")
    infer_var_type = infer_dtypes(_UPDATES)

    def infer_shape(ctx: InferShapeContext) -> None:
        param, index = ctx.dim("Param"), ctx.dim("Index")
        ctx.require(
            len(index) in (1, 2), f"Index has shape {list(index)}; expected [n], the rows or columns that Grad holds"
        )
        ctx.require(
            len(ctx.dim("Grad")) == len(param), f"Grad has shape {list(ctx.dim('Grad'))}; expected {len(param)} dims"
        )
        for x, out in _UPDATES.items():
            if ctx.has_input(x):
                ctx.set_dim(out, ctx.dim(x))
