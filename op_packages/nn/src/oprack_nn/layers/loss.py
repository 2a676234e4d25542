"""Losses; each gives one value per sample, so that `mean` of it is what training minimises."""

from __future__ import annotations

from oprack.layers import LayerHelper, check_variable, generated_layers
from oprack.types import FLOATS, HALF_FLOATS

__getattr__ = generated_layers(
    bpr_loss=("bpr_loss", {"X": "input"}),
    hinge_loss=("hinge_loss", {"Logits": "input", "Labels": "label"}),
    kldiv_loss=("kldiv_loss", {}),
    rank_loss=("rank_loss", {}),
    cos_sim=("cos_sim", {}),
)
_FLOATING = FLOATS | HALF_FLOATS


def cross_entropy(input, label, soft_label=False, ignore_index=-100, name=None):
    r"""$$-\log input_{label}$$ of probabilities [..., classes], such as softmax gives; shape [..., 1].

    label: int64 [..., 1], where `ignore_index` counts 0; with soft_label probabilities of input's shape, and the sum
    $$-\sum_j label_j \log input_j$$. Ops cross_entropy2, cross_entropy. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "cross_entropy", _FLOATING)
    check_variable(label, "label", "cross_entropy", _FLOATING if soft_label else {"int32", "int64"})
    helper = LayerHelper("cross_entropy", name=name)
    if soft_label:
        return helper.apply("cross_entropy", {"X": input, "Label": label}, {"soft_label": True})
    y, shape, match = helper.apply("cross_entropy2", {"X": input, "Label": label}, {"ignore_index": ignore_index})
    shape.stop_gradient = match.stop_gradient = True
    return y


def softmax_with_cross_entropy(
    logits,
    label,
    soft_label=False,
    ignore_index=-100,
    numeric_stable_mode=True,
    return_softmax=False,
    axis=-1,
    name=None,
):
    """cross_entropy(softmax(logits), label) in one step, which never overflows; `axis` has size 1 in the loss.

    label: int64 with size 1 along `axis`, or with soft_label probabilities of logits' shape. return_softmax: returns
    (loss, softmax). Op softmax_with_cross_entropy. Raises InvalidArgumentError.
    """
    check_variable(logits, "logits", "softmax_with_cross_entropy", _FLOATING)
    labels = _FLOATING if soft_label else {"uint8", "int8", "int16", "int32", "int64"}
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


def sigmoid_cross_entropy_with_logits(x, label, ignore_index=-100, name=None, normalize=False):
    """Element-wise cross entropy of sigmoid(x) and label in [0, 1], of one shape; `ignore_index` as a label counts 0.

    normalize: divide by the number of labels that count. Op sigmoid_cross_entropy_with_logits.
    """
    layer = "sigmoid_cross_entropy_with_logits"
    inputs = {"X": check_variable(x, "x", layer, _FLOATING), "Label": check_variable(label, "label", layer, _FLOATING)}
    attrs = {"ignore_index": ignore_index, "normalize": normalize}
    return LayerHelper(layer, name=name).apply(layer, inputs, attrs)


def square_error_cost(input, label, name=None):
    """(input - label)^2, element by element. Ops elementwise_sub, square. Raises InvalidArgumentError."""
    helper = LayerHelper("square_error_cost", name=name)
    x = check_variable(input, "input", "square_error_cost", _FLOATING)
    y = check_variable(label, "label", "square_error_cost", _FLOATING)
    return helper.apply("square", {"X": helper.apply("elementwise_sub", {"X": x, "Y": y})})


def mse_loss(input, label, name=None):
    """Mean of (input - label)^2. Ops elementwise_sub, square, reduce_mean."""
    helper = LayerHelper("mse_loss", name=name)
    return helper.apply("reduce_mean", {"X": square_error_cost(input, label)}, {"reduce_all": True})


def huber_loss(input, label, delta, name=None):
    r"""$$d^2 / 2$$ where $$|d| \le \delta$$, else $$\delta |d| - \delta^2 / 2$$; d = label - input. Op huber_loss."""
    inputs = {
        "X": check_variable(input, "input", "huber_loss", _FLOATING),
        "Y": check_variable(label, "label", "huber_loss", _FLOATING),
    }
    return LayerHelper("huber_loss", name=name).apply("huber_loss", inputs, {"delta": float(delta)})


def smooth_l1(x, y, inside_weight=None, outside_weight=None, sigma=1.0, name=None):
    r"""[N, 1]: sum over a sample of $$0.5 (\sigma d)^2$$ where $$|d| < 1 / \sigma^2$$, else $$|d| - 0.5 / \sigma^2$$.

    d = inside_weight * (x - y), and the summands are weighted with outside_weight. Op smooth_l1_loss.
    """
    inputs = {
        "X": check_variable(x, "x", "smooth_l1", _FLOATING),
        "Y": check_variable(y, "y", "smooth_l1", _FLOATING),
        "InsideWeight": inside_weight,
        "OutsideWeight": outside_weight,
    }
    return LayerHelper("smooth_l1_loss", name=name).apply("smooth_l1_loss", inputs, {"sigma": float(sigma)})


def log_loss(input, label, epsilon=1e-4, name=None):
    r"""$$-label \log(input + \epsilon) - (1 - label) \log(1 - input + \epsilon)$$, shapes [N, 1]. Op log_loss."""
    inputs = {
        "Predicted": check_variable(input, "input", "log_loss", _FLOATING),
        "Labels": check_variable(label, "label", "log_loss", _FLOATING),
    }
    return LayerHelper("log_loss", name=name).apply("log_loss", inputs, {"epsilon": float(epsilon)})


def margin_rank_loss(label, left, right, margin=0.1, name=None):
    """max(0, -label * (left - right) + margin), shapes [N, 1], label 1 or -1. Op margin_rank_loss."""
    layer = "margin_rank_loss"
    inputs = {
        "Label": check_variable(label, "label", layer, _FLOATING),
        "X1": check_variable(left, "left", layer, _FLOATING),
        "X2": check_variable(right, "right", layer, _FLOATING),
    }
    return LayerHelper(layer, name=name).apply(layer, inputs, {"margin": float(margin)})


def label_smooth(label, prior_dist=None, epsilon=0.1, dtype="float32", name=None):
    """(1 - epsilon) * label + epsilon * prior_dist; without one, 1 / classes. label: one-hot [..., classes].

    dtype is accepted for old programs: the result has the dtype of label. Op label_smooth.
    """
    check_variable(label, "label", "label_smooth", _FLOATING)
    inputs = {"X": label, "PriorDist": prior_dist}
    helper = LayerHelper("label_smooth", name=name)
    return helper.apply("label_smooth", inputs, {"epsilon": float(epsilon)})
