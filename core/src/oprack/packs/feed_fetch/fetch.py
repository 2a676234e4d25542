"""fetch: all of the op but its operator."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


class Fetch(OpDef, type="fetch"):
    """X becomes entry `col` of what the run returns."""

    X = Input("Variable to return.")
    Out = Output("Variable of kind FETCH_LIST that collects the results.")
    col = Attr(REQUIRED, "Index of the result.", type=AttrType.INT).at_least(0)
    make_grad = empty_grad

    def infer_shape(ctx):
        """Nothing: Out is a list, not a tensor."""

    def infer_var_type(ctx):
        """Sets nothing: Out stays what it is."""
