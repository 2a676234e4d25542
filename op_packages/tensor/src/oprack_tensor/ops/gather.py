"""gather: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of, normal_axis
from oprack.op.sbp import SbpContext, Signature, factors, letters


class Gather(OpDef, type="gather"):
    r"""$$Out_{..., i, ...} = X_{..., Index_i, ...}$$ along dim `axis`."""

    X = Input("Tensor of rank 1 or more.")
    Index = Input("int32 or int64 [n], [n, 1] or 0-D.")
    Axis = Input("One-element tensor that overrides `axis`.", dispensable=True)
    Out = Output("X with n in place of dim `axis`, or without it for a 0-D Index; LoD of X.")
    axis = Attr(0, "Dim to pick along.")
    expected_kernel_type = dtype_of("X")
    versions = OpVersion("gather").checkpoint("The axis may be a tensor.", ("new_input", "Axis", None))

    def sbp(ctx: SbpContext) -> list[Signature]:
        axis, index = ctx.attr("axis", 0), ctx.dim("Index")
        if ctx.has("Axis"):
            return []
        names = letters(len(ctx.dim("X")))
        axis %= len(names)
        names[axis] = None
        places = ["rows", None][: len(index)]
        made = [*names[:axis], *places[:1], *names[axis + 1 :]]
        return factors({"X": names, "Index": places}, {"Out": made}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, index, axis = ctx.dim("X"), ctx.dim("Index"), ctx.attr("axis")
        ctx.require(
            len(index) < 2 or (len(index) == 2 and index[1] == 1),
            f"Index has shape {list(index)}; expected [n], [n, 1] or []",
        )
        ctx.share_lod("X", "Out")
        if ctx.has_input("Axis"):
            value = ctx.scalar("Axis")
            if value is None:
                ctx.set_dim("Out", (-1,) * (len(dims) - (not index)))
                return
            axis = int(value)
        axis = normal_axis(ctx.op_type, axis, len(dims))
        ctx.set_dim("Out", (*dims[:axis], *index[:1], *dims[axis + 1 :]))


class GatherGrad(GradOpDef, of=Gather, reads="Index Axis", shape_of="X", grads_of="X", linear=True):
    """Adds each part of Out@GRAD to the place of X@GRAD that it came from."""
