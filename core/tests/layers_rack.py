"""Small ops under the names that layers, operators of variables and initializers append."""

from __future__ import annotations

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


class FillConstant(_Fill, type="fill_constant"):
    value = Attr(0.0, "Value.")
    str_value = Attr("", "Exact value.")


class UniformRandom(_Fill, type="uniform_random"):
    min = Attr(-1.0, "Low.")
    max = Attr(1.0, "High.")
    seed = Attr(0, "Seed.")


class Gaussian(_Fill, type="gaussian_random"):
    mean = Attr(0.0, "Mean.")
    std = Attr(1.0, "Deviation.")
    seed = Attr(0, "Seed.")


class TruncatedGaussian(_Fill, type="truncated_gaussian_random"):
    mean = Attr(0.0, "Mean.")
    std = Attr(1.0, "Deviation.")
    seed = Attr(0, "Seed.")


class AssignValue(_Fill, type="assign_value"):
    fp32_values = Attr([], "Values.", type=AttrType.FLOATS)
    bool_values = Attr([], "Values.", type=AttrType.INTS)


class Sums(OpDef, type="elementwise_add"):
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


DEFINITIONS = (FillConstant, UniformRandom, Gaussian, TruncatedGaussian, AssignValue, Sums)
