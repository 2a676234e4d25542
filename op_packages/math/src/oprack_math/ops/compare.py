"""Definitions of comparisons and of tests for infinities and NaN."""

from __future__ import annotations

from oprack.errors import AttributeValueError
from oprack.op import (
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.sbp import unary

from oprack_math.ops._broadcast import Binary


# What isclose and allclose share: tolerances as text or as tensors.
class Close(OpDef):
    """A comparison of two tensors of one shape within tolerances."""

    Input_ = Input("Tensor of any shape.")
    Other = Input("Tensor of Input's shape, to whose size rtol is relative.")
    Rtol = Input("One-element tensor that overrides `rtol`.", dispensable=True)
    Atol = Input("One-element tensor that overrides `atol`.", dispensable=True)
    rtol = Attr("1e-5", "Relative tolerance, a number as text.")
    atol = Attr("1e-8", "Absolute tolerance, a number as text.")
    equal_nan = Attr(False, "Whether NaN equals NaN.")
    expected_kernel_type = dtype_of("Input")
    make_grad = empty_grad

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")


def tolerance(op_type: str, name: str, text: str) -> float:
    """The attribute as a number. Raises AttributeValueError for a text that is none."""
    try:
        return float(text)
    except ValueError:
        wrong = f"op {op_type}: attribute {name} is {text!r}; expected a number as text, such as 1e-5"
        raise AttributeValueError(wrong) from None


# What comparisons of two tensors share.
def force_cpu_checkpoint(op_type: str) -> OpVersion:
    """versions of a comparison."""
    return OpVersion(op_type).checkpoint(
        "force_cpu became an attribute of every comparison.", ("modify_attr", "force_cpu", False)
    )


class Compare(Binary):
    """A comparison; Out is bool."""

    force_cpu = Attr(False, "Keep Out in host memory on a GPU run; the scope of oprack decides, so it has no effect.")
    make_grad = empty_grad

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")


# What tests for NaN and infinities share.
class FiniteTest(OpDef):
    """An element-wise test; Out is bool."""

    X = Input("Tensor or SelectedRows of any shape.")
    Out = Output("bool, shape of X; it has no LoD.")
    make_grad = empty_grad
    sbp = unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", ctx.kind("X"))
        ctx.set_dtype("Out", "bool")


class AnyTest(OpDef):
    """Whether any element passes a test; programs of 1.x have it under the name without _v2."""

    X = Input("Tensor of any shape.")
    Out = Output("bool [1]")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")


class Allclose(Close, type="allclose"):
    r"""$$Out = \bigwedge [|Input - Other| \le atol + rtol \cdot |Other|]$$"""

    Out = Output("bool, 0-D.")
    versions = (
        OpVersion("allclose")
        .checkpoint("Tolerances may be tensors.", ("new_input", "Rtol", None), ("new_input", "Atol", None))
        .checkpoint("Tolerances are texts.", ("new_attr", "rtol", "1e-5"), ("new_attr", "atol", "1e-5"))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Input", "Other")
        ctx.set_dim("Out", ())


class Equal(Compare, type="equal"):
    r"""$$Out = [X = Y]$$ float32 and float64 count as equal when they differ by less than 1e-8."""

    versions = force_cpu_checkpoint("equal")


class EqualAll(OpDef, type="equal_all"):
    r"""$$Out = \bigwedge [X = Y]$$ false for different shapes. Floats may differ by 1e-8, as in equal."""

    X = Input("Tensor of any shape.")
    Y = Input("Tensor of any shape.")
    Out = Output("bool, 0-D.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ())

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "bool")


class GreaterEqual(Compare, type="greater_equal"):
    r"""$$Out = [X \ge Y]$$"""

    versions = force_cpu_checkpoint("greater_equal")


class GreaterThan(Compare, type="greater_than"):
    r"""$$Out = [X > Y]$$"""

    versions = force_cpu_checkpoint("greater_than")


class Isclose(Close, type="isclose"):
    r"""$$Out = [|Input - Other| \le atol + rtol \cdot |Other|]$$ To an infinity only itself is close."""

    Out = Output("bool, shape of Input.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Input", "Other")
        ctx.set_dim("Out", ctx.dim("Input"))


# isfinite (Paddle 1.x): all of the op but its kernel.
class Isfinite(AnyTest, type="isfinite"):
    r"""$$Out = \bigwedge [X \text{ is neither infinite nor NaN}]$$"""

    X = Input("Tensor of any shape.")
    Out = Output("bool [1]; true only where all elements are finite.")


class IsfiniteV2(FiniteTest, type="isfinite_v2"):
    r"""$$Out = [X \text{ is neither infinite nor NaN}]$$"""


class Isinf(AnyTest, type="isinf"):
    r"""$$Out = \bigvee [X = \pm\infty]$$"""


class IsinfV2(FiniteTest, type="isinf_v2"):
    r"""$$Out = [X = \pm\infty]$$"""


class Isnan(AnyTest, type="isnan"):
    r"""$$Out = \bigvee [X \text{ is NaN}]$$"""


class IsnanV2(FiniteTest, type="isnan_v2"):
    r"""$$Out = [X \text{ is NaN}]$$"""


class LessEqual(Compare, type="less_equal"):
    r"""$$Out = [X \le Y]$$"""

    versions = force_cpu_checkpoint("less_equal")


class LessThan(Compare, type="less_than"):
    r"""$$Out = [X < Y]$$"""

    versions = force_cpu_checkpoint("less_than")


class NotEqual(Compare, type="not_equal"):
    r"""$$Out = [X \ne Y]$$ the contrary of `equal`, with its tolerance of 1e-8."""

    versions = force_cpu_checkpoint("not_equal")
