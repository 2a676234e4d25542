"""spectral_norm and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output


class SpectralNorm(OpDef, type="spectral_norm"):
    r"""$$Out = Weight / \sigma,\quad \sigma = u^T W v$$

    $W$ is Weight with `dim` in front and its other dims made one. $u$ and $v$ start as U and V and are improved by
    `power_iters` rounds of $v = W^T u / (\|W^T u\| + \epsilon)$, $u = W v / (\|W v\| + \epsilon)$.
    """

    Weight = Input("Tensor of rank 2 to 5.")
    U = Input("[Weight's dim `dim`].")
    V = Input("[the product of Weight's other dims].")
    Out = Output("Shape of Weight; no LoD.")
    dim = Attr(0, "The dim of Weight that is the rows of $W$.")
    power_iters = Attr(1, "Rounds of the power iteration.").check(lambda v: v >= 0, "a number of rounds, 0 or more")
    eps = Attr(1e-12, "Keeps norms from being zero.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("Weight", 2, 3, 4, 5)
        axis, columns = ctx.axis("Weight", "dim"), 1
        for i, d in enumerate(dims):
            if i != axis:
                columns = -1 if -1 in (columns, d) else columns * d
        ctx.require_dims("U", (dims[axis],), why=f"dim {axis} of Weight {list(dims)}")
        ctx.require_dims("V", (columns,), why=f"all dims of Weight {list(dims)} but dim {axis}")
        ctx.set_dim("Out", dims)


class SpectralNormGrad(GradOpDef, of=SpectralNorm, reads="Weight U V", grads_of="Weight"):
    r"""$$W@GRAD = (Out@GRAD - \langle Out@GRAD, Out \rangle\, u v^T) / \sigma$$ and what flows through $u$ and $v$.

    The second part vanishes as the power iteration converges.
    """
