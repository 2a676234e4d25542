"""feed and fetch, the ops of the core itself: all but their operators, which are in a room above this one."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


class Feed(OpDef, type="feed"):
    """Out is entry `col` of what the caller feeds, with its LoD."""

    X = Input("Variable of kind FEED_MINIBATCH that holds the fed values.")
    Out = Output("The fed value.")
    col = Attr(REQUIRED, "Index of the value among the fed ones.", type=AttrType.INT).at_least(0)
    make_grad = empty_grad

    def infer_shape(ctx):
        """Nothing: the VarDesc of Out says its dims, and the fed value decides them when it runs."""

    def infer_var_type(ctx):
        """Nothing: the VarDesc of Out says its dtype."""


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
