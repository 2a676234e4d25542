"""sum: all of the op but its kernels."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import Attr, ForwardOp, GradOp, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.op.sbp import elementwise
from oprack.types import VarType


def _merged(ctx: InferShapeContext, dims: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all inputs share, with dims of -1 filled in from those that know them."""
    known = [d for d in dims if 0 not in d] or dims  # an input without elements adds nothing
    merged, fits = list(known[0]), True
    for d in known[1:]:
        fits = len(d) == len(merged) and all(a == b or -1 in (a, b) for a, b in zip(d, merged, strict=True))
        if not fits:
            break
        merged = [max(a, b) for a, b in zip(d, merged, strict=True)]
    # once, since the text takes as long as the loop
    shapes = ", ".join(str(list(x)) for x in dims)
    ctx.require(fits, f"X has shapes {shapes}; expected equal shapes (sum does not broadcast)")
    return tuple(merged)


class Sum(OpDef, type="sum"):
    r"""$$Out = \sum_i X_i$$

    Dense tensors, SelectedRows (rows that are listed twice are added; a dense input makes the result dense), or arrays
    of tensors, which are added element by element. Inputs that hold no value are left out.
    """

    X = Input("Tensors of one shape, SelectedRows, or arrays of tensors.", duplicable=True)
    Out = Output("Shape, type and LoD of the first X.")
    use_mkldnn = Attr(False, "Run oneDNN's kernel where its plugin is installed.")
    mkldnn_data_type = Attr("float32", "dtype of oneDNN's kernel.")
    inplace = {"X": "Out"}
    sbp = elementwise(("X",), ("Out",), linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        given = [i for i in range(ctx.input_count("X")) if ctx.is_initialized("X", i)]
        ctx.require(bool(given), "none of X holds a value; expected one at least")
        if ctx.kind("X", given[0]) == VarType.LOD_TENSOR_ARRAY:
            return
        ctx.set_dim("Out", _merged(ctx, [ctx.dim("X", i) for i in given]))
        ctx.share_lod("X", "Out", given[0])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        kinds = [ctx.kind("X", i) for i in range(ctx.input_count("X"))]
        if VarType.LOD_TENSOR_ARRAY in kinds:
            ctx.set_kind("Out", VarType.LOD_TENSOR_ARRAY)
        else:  # sparse values of one kind stay so
            ctx.set_kind("Out", kinds[0] if len(set(kinds)) == 1 else VarType.LOD_TENSOR)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd: ForwardOp) -> list[GradOp]:
        attrs = {"scale": 1.0, "bias": 0.0, "bias_after_scale": True}
        return [
            GradOp("scale", X=fwd.output_grad("Out"), Out=fwd.input_grad("X", i), attrs=attrs)
            for i in range(fwd.input_count("X"))
        ]
