"""{{ cookiecutter.first_op }}: all of the op but its kernels."""

from __future__ import annotations

from typing import Any

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output


class {{ cookiecutter.__class_name }}(OpDef, type="{{ cookiecutter.first_op }}"):
    r"""$$Out = factor \cdot X^2$$, element by element."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape, dtype and LoD of X.")
    factor = Attr(1.0, "Factor; not zero.").check(lambda v: v != 0, "a value other than 0")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")

    def make_grad(fwd: Any) -> GradOp:
        return GradOp(
            "{{ cookiecutter.first_op }}_grad",
            X=fwd.input("X"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class {{ cookiecutter.__class_name }}Grad(GradOpDef, type="{{ cookiecutter.first_op }}_grad"):
    r"""$$X@GRAD = 2 \cdot factor \cdot X \cdot Out@GRAD$$"""

    X = Input("Input of {{ cookiecutter.first_op }}.")
    Out_grad = Input("Gradient of its output.")
    X_grad = Output("Gradient of its input, of the same shape.")
    factor = Attr(1.0, "Factor of {{ cookiecutter.first_op }}.")

    def infer_shape(ctx: Any) -> None:
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")
