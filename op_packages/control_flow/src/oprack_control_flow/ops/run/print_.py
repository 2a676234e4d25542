"""print: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, OpVersion, Output
from oprack.types import AttrType


class Print(OpDef, type="print"):
    r"""$$Out = In$$, which is written to the standard output in passing."""

    In = Input("Tensor of any shape.")
    Out = Output("Shape, type and LoD of In.")
    first_n = Attr(REQUIRED, "Print only the first n times; -1 for always.", type=AttrType.INT)
    message = Attr(REQUIRED, "Text in front.", type=AttrType.STRING)
    summarize = Attr(REQUIRED, "How many elements to print; -1 for all.", type=AttrType.INT)
    print_tensor_name = Attr(True, "Print the variable's name.")
    print_tensor_type = Attr(True, "Print the dtype.")
    print_tensor_shape = Attr(True, "Print the shape.")
    print_tensor_layout = Attr(True, "Print the memory layout.")
    print_tensor_lod = Attr(True, "Print the LoD.")
    print_phase = Attr("BOTH", "When to print: FORWARD, BACKWARD or BOTH.").in_set(("FORWARD", "BACKWARD", "BOTH"))
    is_forward = Attr(True, "Whether In is no gradient.")
    versions = OpVersion("print").checkpoint("The layout may be left out.", ("new_attr", "print_tensor_layout", True))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("In"))
        ctx.share_lod("In", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "print", In=fwd.output_grad("Out"), Out=fwd.input_grad("In"), attrs=fwd.attrs | {"is_forward": False}
        )
