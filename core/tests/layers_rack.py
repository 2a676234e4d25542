"""A pack: small ops, under names of its own, for the roles and initializers that writing programs by hand asks for."""

from __future__ import annotations

import oprack
from oprack.layers.variable import Initializer
from oprack.op import Attr, Input, OpDef, Output, dtype_of_attr
from oprack.types import AttrType


class _Fill(OpDef):
    Out = Output("Tensor.")
    shape = Attr([], "Shape.", type=AttrType.LONGS)
    dtype = Attr(5, "dtype.")
    expected_kernel_type = dtype_of_attr("dtype")

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.attr("shape"))

    def infer_var_type(ctx):
        ctx.set_dtype("Out", ctx.attr("dtype"))


class Filled(_Fill, type="rack_fill"):
    value = Attr(0.0, "Value.")
    str_value = Attr("", "Exact value.")


class Drawn(_Fill, type="rack_draw"):
    seed = Attr(0, "Seed.")


class Added(OpDef, type="rack_add"):
    """Out = X + Y."""

    X = Input("Tensor.")
    Y = Input("Tensor.")
    Out = Output("As X.")
    axis = Attr(-1, "Where Y starts.")
    is_test = Attr(False, "Nothing.")
    tuning = Attr(7, "A detail of the run.", extra=True)
    limit = Attr(1.0, "Number or variable.", support_tensor=True)

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))


class Constant(Initializer):
    def __init__(self, value):
        self.value = value

    def __call__(self, var):
        self.append("rack_fill", var, {"value": float(self.value)})


class Xavier(Initializer):
    def __call__(self, var):
        self.append("rack_draw", var, {})


@oprack.hookimpl
def oprack_ops(register):
    for definition in (Filled, Drawn, Added):
        register.op(definition)


@oprack.hookimpl
def oprack_vocabulary(register):
    register.role("add", "rack_add")
    register.role("constant", "rack_fill")


def plus(self, other):
    """What `x + other` calls."""
    return self._apply("rack_add", {"X": self, "Y": other}, {})


@oprack.hookimpl
def oprack_layers(register):
    register.layers(__name__, "Constant", "Xavier", namespace="initializer")
    register.layer("add", f"{__name__}:plus", namespace="operators")
