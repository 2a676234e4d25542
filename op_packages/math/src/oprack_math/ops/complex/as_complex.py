"""as_complex: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, InferVarTypeContext, Input, OpDef, Output

from oprack_math.ops.complex._family import set_complex


class AsComplex(OpDef, type="as_complex"):
    r"""$$Out_j = X_{j,0} + i X_{j,1}$$ over the last dim of X."""

    X = Input("[..., 2] real numbers.")
    Out = Output("Complex, X's shape without its last dim; LoD of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(
            len(dims) > 0 and dims[-1] in (2, -1),
            f"X has shape {list(dims)}; expected a last dim of 2: the real and the imaginary part",
        )
        ctx.set_dim("Out", dims[:-1])
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        set_complex(ctx, "X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("as_real", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"))
