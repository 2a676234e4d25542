"""sparse_momentum: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input

from oprack_optimizer.ops._update import LEARNING_RATE, MASTER, PARAM
from oprack_optimizer.ops.momentum._family import MOMENTUM_UPDATES, VELOCITY, MomentumBase


class SparseMomentum(MomentumBase, type="sparse_momentum"):
    r"""$$g_r = \sum_{i : Index_i = r} Grad_i, \; VelocityOut = mu \cdot Velocity + g, \; ParamOut = Param -
    LearningRate \cdot VelocityOut$$

    As momentum, for the rows (or columns, with axis 1) of Param that Index lists; all others have a gradient of 0.
    """

    Param = PARAM
    Grad = Input("Gradients of the listed rows or columns.")
    Velocity = VELOCITY
    Index = Input("Rows or columns that Grad holds [n].")
    Axis = Input("One int that overrides `axis`.", dispensable=True)
    LearningRate = LEARNING_RATE
    MasterParam = MASTER
    axis = Attr(0, "0: Index lists rows. 1: columns.").in_set((0, 1))

    def infer_shape(ctx: InferShapeContext) -> None:
        param, index = ctx.dim("Param"), ctx.dim("Index")
        ctx.require(
            len(index) in (1, 2), f"Index has shape {list(index)}; expected [n], the rows or columns that Grad holds"
        )
        ctx.require(
            len(ctx.dim("Grad")) == len(param), f"Grad has shape {list(ctx.dim('Grad'))}; expected {len(param)} dims"
        )
        for x, out in MOMENTUM_UPDATES.items():
            if ctx.has_input(x):
                ctx.set_dim(out, ctx.dim(x))
