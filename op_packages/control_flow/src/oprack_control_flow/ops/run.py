"""The run itself: what it prints and checks, where it may go, what it drops."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    ForwardOp,
    GradOp,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.types import AttrType, VarType


class Assert(OpDef, type="assert"):
    """Stops the run with an error that shows Data unless $$Cond = true$$."""

    Cond = Input("One bool.")
    Data = Input("Tensors to show.", duplicable=True)
    summarize = Attr(-1, "How many elements of each tensor to show; -1 for all.", type=AttrType.LONG)
    expected_kernel_type = dtype_of("Cond")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""


# delete_var: its definition; the operator is in the file of this name below operators.
class DeleteVar(OpDef, type="delete_var"):
    """Drops the values of variables, whose memory is then free."""

    X = Input("Variables of any kind.", duplicable=True)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""


# get_places: its definition; the operator is in the file of this name below operators.
class GetPlaces(OpDef, type="get_places"):
    """Out lists places to run on."""

    Out = Output("List of places.")
    device_count = Attr(0, "How many; 0 for all cores, or for the first GPU.")
    device_type = Attr("AUTO", "CPU, CUDA, or AUTO for the kind of place of the run.").in_set(("AUTO", "CPU", "CUDA"))
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """A list of places has no shape."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.PLACE_LIST)


class IsEmpty(OpDef, type="is_empty"):
    r"""$$Out = [|X| = 0]$$: whether X has no elements."""

    X = Input("Tensor of any shape.")
    Out = Output("bool, 0-D.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ())

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")


# print: its definition; the operator is in the file of this name below operators.
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
