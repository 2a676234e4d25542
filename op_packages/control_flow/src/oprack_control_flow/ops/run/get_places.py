"""get_places: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, OpDef, Output, empty_grad
from oprack.types import VarType


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
