"""exponential: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradOp

from oprack_random.ops._draw_like import DrawLike


class Exponential(DrawLike, type="exponential"):
    r"""$$Out \sim \lambda e^{-\lambda x},\quad x \ge 0$$"""

    lambda_ = Attr(1.0, "Rate, the reciprocal of the mean.", name="lambda").greater_than(0)
    inplace = {"X": "Out"}

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("fill_any_like", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs={"value": 0.0})
