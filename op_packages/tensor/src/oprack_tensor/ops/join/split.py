"""split: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output, dtype_of, normal_axis
from oprack.op.sbp import SbpContext, Signature, factors, letters
from oprack.types import AttrType

from oprack_tensor.dims import sections_of


class Split(OpDef, type="split"):
    r"""$$Out[k]_{\ldots, i, \ldots} = X_{\ldots, o_k + i, \ldots}$$ along dim `axis`, o_k the sum of the sizes before.

    `num` equal parts, or parts of sizes `sections` (one may be -1).
    """

    X = Input("Tensor of rank 1 or more.")
    AxisTensor = Input("One-element tensor that overrides `axis`.", dispensable=True)
    SectionsTensorList = Input("One-element tensors that override `sections`.", dispensable=True, duplicable=True)
    Out = Output("The parts; LoD of X unless axis is 0.", duplicable=True)
    sections = Attr([], "Size of each part.", type=AttrType.INTS)
    num = Attr(0, "Number of equal parts; 0 when `sections` counts.")
    axis = Attr(0, "Dim to cut along; negative counts from the end.")
    use_mkldnn = Attr(False, "Prefer a oneDNN kernel.")
    mkldnn_data_type = Attr("float32", "dtype of oneDNN kernels.")
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("AxisTensor") or ctx.has("SectionsTensorList"):
            return []
        names = letters(len(ctx.dim("X")))
        names[ctx.attr("axis", 0)] = None
        return factors({"X": names}, {"Out": names}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis, parts = ctx.dim("X"), ctx.attr("axis"), ctx.output_count("Out")
        if ctx.has_input("AxisTensor"):
            value = ctx.scalar("AxisTensor")
            if value is None:
                ctx.set_dims("Out", [(-1,) * len(dims)] * parts)
                return
            axis = int(value)
        axis = normal_axis(ctx.op_type, axis, len(dims))
        sections = list(ctx.attr("sections"))
        if ctx.has_input("SectionsTensorList"):
            values = [ctx.scalar("SectionsTensorList", i) for i in range(ctx.input_count("SectionsTensorList"))]
            sections = [-1 if v is None else int(v) for v in values]
        unknown = not ctx.is_runtime and (dims[axis] < 0 or ctx.has_input("SectionsTensorList"))
        sizes = [-1] * parts if unknown else sections_of(ctx.op_type, dims[axis], ctx.attr("num"), sections)
        ctx.require(len(sizes) == parts, f"Out has {parts} variables for {len(sizes)} parts; expected one each")
        ctx.set_dims("Out", [(*dims[:axis], n, *dims[axis + 1 :]) for n in sizes])
        if axis != 0:
            for i in range(parts):
                ctx.share_lod("X", "Out", 0, i)

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "concat",
            X=fwd.output_grad("Out"),
            AxisTensor=fwd.input("AxisTensor"),
            Out=fwd.input_grad("X"),
            attrs={"axis": fwd.attrs["axis"]},
        )
