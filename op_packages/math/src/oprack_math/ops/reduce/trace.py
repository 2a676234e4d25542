"""trace and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, OpVersion, Output


class Trace(OpDef, type="trace"):
    r"""$$Out = \sum_i Input_{\dots, i, \dots, i + offset, \dots}$$ the sum of a diagonal of dims axis1 and axis2."""

    Input_ = Input("Tensor of rank 2 or more.")
    Out = Output("Input's shape without both dims; no LoD.")
    offset = Attr(0, "Which diagonal: 0 the main one, positive above it.")
    axis1 = Attr(0, "Dim of the rows.")
    axis2 = Attr(1, "Dim of the columns.")
    versions = OpVersion("trace").checkpoint(
        "The dims are named axis1 and axis2.",
        ("new_attr", "axis1", 0),
        ("new_attr", "axis2", 1),
        ("delete_attr", "dim1", None),
        ("delete_attr", "dim2", None),
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Input")
        ctx.require(len(dims) >= 2, f"Input has shape {list(dims)}; expected rank 2 or more")
        axes = [ctx.axis("Input", name) for name in ("axis1", "axis2")]
        ctx.require(axes[0] != axes[1], f"axis1 and axis2 both name dim {axes[0]} of Input; expected two dims")
        ctx.set_dim("Out", [d for i, d in enumerate(dims) if i not in axes])


class TraceGrad(GradOpDef, of=Trace, shape_of="Input", linear=True):
    r"""$$Input@GRAD_{\dots, i, \dots, i + offset, \dots} = Out@GRAD$$ and 0 off that diagonal."""
