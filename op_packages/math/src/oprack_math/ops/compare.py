"""Comparisons of two tensors, element by element."""

from __future__ import annotations

from oprack.op import Attr, OpVersion, empty_grad

from oprack_math.ops._elementwise import Binary


def _force_cpu(op_type):
    return OpVersion(op_type).checkpoint(
        "force_cpu became an attribute of every comparison.", ("modify_attr", "force_cpu", False)
    )


class Compare(Binary):
    """A comparison; Out is bool."""

    force_cpu = Attr(False, "Keep Out in host memory on a GPU run; the scope of oprack decides, so it has no effect.")
    make_grad = empty_grad

    def infer_var_type(ctx):
        ctx.set_dtype("Out", "bool")


class Equal(Compare, type="equal"):
    r"""$$Out = [X = Y]$$ float32 and float64 count as equal when they differ by less than 1e-8."""

    versions = _force_cpu("equal")


class NotEqual(Compare, type="not_equal"):
    r"""$$Out = [X \ne Y]$$ the contrary of `equal`, with its tolerance of 1e-8."""

    versions = _force_cpu("not_equal")


class GreaterThan(Compare, type="greater_than"):
    r"""$$Out = [X > Y]$$"""

    versions = _force_cpu("greater_than")


class GreaterEqual(Compare, type="greater_equal"):
    r"""$$Out = [X \ge Y]$$"""

    versions = _force_cpu("greater_equal")


class LessThan(Compare, type="less_than"):
    r"""$$Out = [X < Y]$$"""

    versions = _force_cpu("less_than")


class LessEqual(Compare, type="less_equal"):
    r"""$$Out = [X \le Y]$$"""

    versions = _force_cpu("less_equal")
