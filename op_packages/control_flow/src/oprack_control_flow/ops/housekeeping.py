"""delete_var, get_places and rnn_memory_helper: definitions."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import VarType


class DeleteVar(OpDef, type="delete_var"):
    """Drops the values of variables, whose memory is then free."""

    X = Input("Variables of any kind.", duplicable=True)
    make_grad = empty_grad

    def infer_shape(ctx):
        """There is no output."""


class GetPlaces(OpDef, type="get_places"):
    """Out lists places to run on."""

    Out = Output("List of places.")
    device_count = Attr(0, "How many; 0 for all cores, or for the first GPU.")
    device_type = Attr("AUTO", "CPU, CUDA, or AUTO for the kind of place of the run.").in_set(("AUTO", "CPU", "CUDA"))
    make_grad = empty_grad

    def infer_shape(ctx):
        """A list of places has no shape."""

    def infer_var_type(ctx):
        ctx.set_kind("Out", VarType.PLACE_LIST)


class RnnMemoryHelper(OpDef, type="rnn_memory_helper"):
    """Out is X: gives the new state of a StaticRNN a name of its own (programs of 1.x)."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape, type and LoD of X.")
    dtype = Attr(5, "dtype of X.")

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class RnnMemoryHelperGrad(GradOpDef, of=RnnMemoryHelper, reads="X Out? Out@GRAD?", shape_of="X Out"):
    """X@GRAD is Out@GRAD, or 0 where no later step used the state."""

    expected_kernel_type = dtype_of("X")
