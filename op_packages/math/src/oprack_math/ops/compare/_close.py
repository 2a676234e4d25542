"""What isclose and allclose share: tolerances as text or as tensors."""

from __future__ import annotations

from oprack.errors import AttributeValueError
from oprack.op import Attr, InferVarTypeContext, Input, OpDef, dtype_of, empty_grad


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
