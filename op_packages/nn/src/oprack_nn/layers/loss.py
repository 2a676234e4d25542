"""Layers of losses."""

from __future__ import annotations

from oprack.layers import LayerHelper, Variable, check_variable
from oprack.types import FLOATS, HALF_FLOATS

# Dtypes that layers of losses take.
FLOATING = FLOATS | HALF_FLOATS


# The layer cross_entropy.
def cross_entropy(
    input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100, name: str | None = None
) -> Variable:
    r"""$$-\log input_{label}$$ of probabilities [..., classes], such as softmax gives; shape [..., 1].

    label: int64 [..., 1], where `ignore_index` counts 0; with soft_label probabilities of input's shape, and the sum
    $$-\sum_j label_j \log input_j$$. Ops cross_entropy2, cross_entropy. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "cross_entropy", FLOATING)
    check_variable(label, "label", "cross_entropy", FLOATING if soft_label else {"int32", "int64"})
    helper = LayerHelper("cross_entropy", name=name)
    if soft_label:
        return helper.apply("cross_entropy", {"X": input, "Label": label}, {"soft_label": True})
    y, shape, match = helper.apply("cross_entropy2", {"X": input, "Label": label}, {"ignore_index": ignore_index})
    shape.stop_gradient = match.stop_gradient = True
    return y


# The layer huber_loss.
def huber_loss(input: Variable, label: Variable, delta: float, name: str | None = None) -> Variable:
    r"""$$d^2 / 2$$ where $$|d| \le \delta$$, else $$\delta |d| - \delta^2 / 2$$; d = label - input. Op huber_loss."""
    inputs = {
        "X": check_variable(input, "input", "huber_loss", FLOATING),
        "Y": check_variable(label, "label", "huber_loss", FLOATING),
    }
    return LayerHelper("huber_loss", name=name).apply("huber_loss", inputs, {"delta": float(delta)})


# The layer label_smooth.
def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: object = "float32",
    name: str | None = None,
) -> Variable:
    """(1 - epsilon) * label + epsilon * prior_dist; without one, 1 / classes. label: one-hot [..., classes].

    dtype is accepted for old programs: the result has the dtype of label. Op label_smooth.
    """
    check_variable(label, "label", "label_smooth", FLOATING)
    inputs = {"X": label, "PriorDist": prior_dist}
    helper = LayerHelper("label_smooth", name=name)
    return helper.apply("label_smooth", inputs, {"epsilon": float(epsilon)})


# The layer log_loss.
def log_loss(input: Variable, label: Variable, epsilon: float = 1e-4, name: str | None = None) -> Variable:
    r"""$$-label \log(input + \epsilon) - (1 - label) \log(1 - input + \epsilon)$$, shapes [N, 1]. Op log_loss."""
    inputs = {
        "Predicted": check_variable(input, "input", "log_loss", FLOATING),
        "Labels": check_variable(label, "label", "log_loss", FLOATING),
    }
    return LayerHelper("log_loss", name=name).apply("log_loss", inputs, {"epsilon": float(epsilon)})


# The layer margin_rank_loss.
def margin_rank_loss(
    label: Variable, left: Variable, right: Variable, margin: float = 0.1, name: str | None = None
) -> Variable:
    """max(0, -label * (left - right) + margin), shapes [N, 1], label 1 or -1. Op margin_rank_loss."""
    layer = "margin_rank_loss"
    inputs = {
        "Label": check_variable(label, "label", layer, FLOATING),
        "X1": check_variable(left, "left", layer, FLOATING),
        "X2": check_variable(right, "right", layer, FLOATING),
    }
    return LayerHelper(layer, name=name).apply(layer, inputs, {"margin": float(margin)})


# The layer square_error_cost.
def square_error_cost(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """(input - label)^2, element by element. Ops elementwise_sub, square. Raises InvalidArgumentError."""
    helper = LayerHelper("square_error_cost", name=name)
    x = check_variable(input, "input", "square_error_cost", FLOATING)
    y = check_variable(label, "label", "square_error_cost", FLOATING)
    return helper.apply("square", {"X": helper.apply("elementwise_sub", {"X": x, "Y": y})})


# The layer mse_loss.
def mse_loss(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """Mean of (input - label)^2. Ops elementwise_sub, square, reduce_mean."""
    helper = LayerHelper("mse_loss", name=name)
    return helper.apply("reduce_mean", {"X": square_error_cost(input, label)}, {"reduce_all": True})


# The layer sigmoid_cross_entropy_with_logits.
def sigmoid_cross_entropy_with_logits(
    x: Variable, label: Variable, ignore_index: int = -100, name: str | None = None, normalize: bool = False
) -> Variable:
    """Element-wise cross entropy of sigmoid(x) and label in [0, 1], of one shape; `ignore_index` as a label counts 0.

    normalize: divide by the number of labels that count. Op sigmoid_cross_entropy_with_logits.
    """
    layer = "sigmoid_cross_entropy_with_logits"
    inputs = {"X": check_variable(x, "x", layer, FLOATING), "Label": check_variable(label, "label", layer, FLOATING)}
    attrs = {"ignore_index": ignore_index, "normalize": normalize}
    return LayerHelper(layer, name=name).apply(layer, inputs, attrs)


# The layer smooth_l1.
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


# The layer softmax_with_cross_entropy.
def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """cross_entropy(softmax(logits), label) in one step, which never overflows; `axis` has size 1 in the loss.

    label: int64 with size 1 along `axis`, or with soft_label probabilities of logits' shape. return_softmax: returns
    (loss, softmax). Op softmax_with_cross_entropy. Raises InvalidArgumentError.
    """
    check_variable(logits, "logits", "softmax_with_cross_entropy", FLOATING)
    labels = FLOATING if soft_label else {"uint8", "int8", "int16", "int32", "int64"}
    check_variable(label, "label", "softmax_with_cross_entropy", labels)
    attrs = {
        "soft_label": soft_label,
        "ignore_index": ignore_index,
        "numeric_stable_mode": numeric_stable_mode,
        "axis": axis,
    }
    helper = LayerHelper("softmax_with_cross_entropy", name=name)
    softmax, loss = helper.apply("softmax_with_cross_entropy", {"Logits": logits, "Label": label}, attrs)
    return (loss, softmax) if return_softmax else loss
