"""Sums, means and extrema along dims or over lists of variables."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, check_variable


def _reduce(op_type, words, stop_gradient=False):
    def layer(input, dim=None, keep_dim=False, name=None):
        check_variable(input, "input", op_type)
        dims = [] if dim is None else list(dim) if isinstance(dim, list | tuple) else [dim]
        every = not dims or len(dims) == len(input.shape)
        attrs = {"dim": dims or [0], "keep_dim": keep_dim, "reduce_all": every}
        helper = LayerHelper(op_type, name=name)
        return helper.apply(op_type, {"X": input}, attrs, stop_gradient=stop_gradient)

    layer.__name__ = layer.__qualname__ = op_type
    layer.__doc__ = (
        f"{words} along `dim`, an int or a list of them (None: all, which leaves shape ()).\n\n    keep_dim: leave "
        f"these dims with size 1. Op {op_type}. Raises InvalidArgumentError for a dim that is out of range."
    )
    return layer


reduce_sum = _reduce("reduce_sum", "Sum")
reduce_mean = _reduce("reduce_mean", "Mean")
reduce_max = _reduce("reduce_max", "Maximum")
reduce_min = _reduce("reduce_min", "Minimum")
reduce_prod = _reduce("reduce_prod", "Product")
reduce_all = _reduce("reduce_all", "Whether all elements are true", stop_gradient=True)
reduce_any = _reduce("reduce_any", "Whether any element is true", stop_gradient=True)


def sums(input, out=None, name=None):
    """Element-wise sum of a list of variables of one shape and dtype; SelectedRows may be among them.

    out: a Variable that receives the result. Op sum. Raises InvalidArgumentError.
    """
    values = list(input) if isinstance(input, list | tuple) else [input]
    if not values:
        raise InvalidArgumentError("sums: input is empty; expected one variable or more")
    outs = None if out is None else {"Out": check_variable(out, "out", "sums")}
    values = [check_variable(v, "input", "sums") for v in values]
    return LayerHelper("sum", name=name).apply("sum", {"X": values}, outs=outs)


def _arg(op_type, name_of_layer, words):
    def layer(x, axis=0, name=None):
        check_variable(x, "x", name_of_layer)
        helper = LayerHelper(op_type, name=name)
        return helper.apply(op_type, {"X": x}, {"axis": axis}, stop_gradient=True)

    layer.__name__ = layer.__qualname__ = name_of_layer
    layer.__doc__ = (
        f"int64 place of the {words} along `axis`; that dim is gone. Op {op_type}. Raises InvalidArgumentError."
    )
    return layer


argmax = _arg("arg_max", "argmax", "largest element")
argmin = _arg("arg_min", "argmin", "smallest element")
