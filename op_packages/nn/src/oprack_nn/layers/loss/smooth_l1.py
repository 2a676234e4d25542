"""The layer smooth_l1."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable

from oprack_nn.layers.loss._family import FLOATING


def smooth_l1(
    x: Variable,
    y: Variable,
    inside_weight: Variable | None = None,
    outside_weight: Variable | None = None,
    sigma: float = 1.0,
    name: str | None = None,
) -> Variable:
    r"""[N, 1]: sum over a sample of $$0.5 (\sigma d)^2$$ where $$|d| < 1 / \sigma^2$$, else $$|d| - 0.5 / \sigma^2$$.

    d = inside_weight * (x - y), and the summands are weighted with outside_weight. Op smooth_l1_loss.
    """
    inputs = {
        "X": check_variable(x, "x", "smooth_l1", FLOATING),
        "Y": check_variable(y, "y", "smooth_l1", FLOATING),
        "InsideWeight": inside_weight,
        "OutsideWeight": outside_weight,
    }
    return LayerHelper("smooth_l1_loss", name=name).apply("smooth_l1_loss", inputs, {"sigma": float(sigma)})
