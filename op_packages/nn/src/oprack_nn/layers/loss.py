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
    r"""Computes cross entropy of probabilities, $$-\log input_{label}$$.

    Op cross_entropy2, or cross_entropy for soft labels.

    Args:
        input: Probabilities [..., classes], as softmax gives them.
        label: Class numbers [..., 1], int64; with soft_label probabilities of the shape of input, for $$-\sum_j label_j
            \log input_j$$.
        soft_label: Whether labels are probabilities.
        ignore_index: A class number whose loss is 0.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [..., 1].

    Raises:
        InvalidArgumentError: An argument is no such Variable.
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
    r"""Appends op huber_loss: squared for small errors, linear for large ones.

    $$d^2 / 2$$ where $$|d| \le \delta$$, else $$\delta |d| - \delta^2 / 2$$; d = label - input.

    Args:
        input: Predictions, floats of any shape.
        label: Targets, of the shape of input.
        delta: The error at which the loss becomes linear.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape of input.
    """
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
    """Appends op label_smooth: (1 - epsilon) * label + epsilon * prior_dist.

    Args:
        label: One-hot labels [..., classes], floats.
        prior_dist: A distribution [1, classes]; None: 1 / classes for each class.
        epsilon: The weight of the prior, from 0 to 1.
        dtype: Accepted for old programs: the result has the dtype of label.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape and dtype of label.
    """
    check_variable(label, "label", "label_smooth", FLOATING)
    inputs = {"X": label, "PriorDist": prior_dist}
    helper = LayerHelper("label_smooth", name=name)
    return helper.apply("label_smooth", inputs, {"epsilon": float(epsilon)})


# The layer log_loss.
def log_loss(input: Variable, label: Variable, epsilon: float = 1e-4, name: str | None = None) -> Variable:
    r"""Computes binary cross entropy of probabilities: op log_loss.

    $$-label \log(input + \epsilon) - (1 - label) \log(1 - input + \epsilon)$$

    Args:
        input: Probabilities [N, 1].
        label: Targets of 0 and 1 [N, 1], floats.
        epsilon: Added against the logarithm of 0.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [N, 1].
    """
    inputs = {
        "Predicted": check_variable(input, "input", "log_loss", FLOATING),
        "Labels": check_variable(label, "label", "log_loss", FLOATING),
    }
    return LayerHelper("log_loss", name=name).apply("log_loss", inputs, {"epsilon": float(epsilon)})


# The layer margin_rank_loss.
def margin_rank_loss(
    label: Variable, left: Variable, right: Variable, margin: float = 0.1, name: str | None = None
) -> Variable:
    """Penalizes pairs in the wrong order, max(0, -label * (left - right) + margin): op margin_rank_loss.

    Args:
        label: 1 where left should be the larger, else -1, [N, 1], floats.
        left: Scores [N, 1].
        right: Scores [N, 1].
        margin: The difference from which on a pair costs nothing.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [N, 1].
    """
    layer = "margin_rank_loss"
    inputs = {
        "Label": check_variable(label, "label", layer, FLOATING),
        "X1": check_variable(left, "left", layer, FLOATING),
        "X2": check_variable(right, "right", layer, FLOATING),
    }
    return LayerHelper(layer, name=name).apply(layer, inputs, {"margin": float(margin)})


# The layer square_error_cost.
def square_error_cost(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """Computes (input - label)^2 element by element: ops elementwise_sub and square.

    Args:
        input: Predictions, floats.
        label: Targets, of the shape of input.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of the shape of input.

    Raises:
        InvalidArgumentError: An argument is no Variable, or shapes do not fit.
    """
    helper = LayerHelper("square_error_cost", name=name)
    x = check_variable(input, "input", "square_error_cost", FLOATING)
    y = check_variable(label, "label", "square_error_cost", FLOATING)
    return helper.apply("square", {"X": helper.apply("elementwise_sub", {"X": x, "Y": y})})


# The layer mse_loss.
def mse_loss(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """Computes the mean of (input - label)^2: ops elementwise_sub, square and reduce_mean.

    Args:
        input: Predictions, floats.
        label: Targets, of the shape of input.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable of one element.
    """
    helper = LayerHelper("mse_loss", name=name)
    return helper.apply("reduce_mean", {"X": square_error_cost(input, label)}, {"reduce_all": True})


# The layer sigmoid_cross_entropy_with_logits.
def sigmoid_cross_entropy_with_logits(
    x: Variable, label: Variable, ignore_index: int = -100, name: str | None = None, normalize: bool = False
) -> Variable:
    """Computes cross entropy of sigmoid(x) and labels, element by element: the op of that name.

    Args:
        x: Logits, floats.
        label: Targets from 0 to 1, of the shape of x.
        ignore_index: A label whose loss is 0.
        name: Prefix of the names of what the layer makes; None: that of the layer.
        normalize: Whether to divide by the number of labels that count.

    Returns:
        Variable of the shape of x.
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
    r"""Computes the smooth L1 loss, summed for each sample: op smooth_l1_loss.

    $$0.5 (\sigma d)^2$$ where $$|d| < 1 / \sigma^2$$, else $$|d| - 0.5 / \sigma^2$$, of d = inside_weight * (x - y).

    Args:
        x: Predictions [N, ...], floats.
        y: Targets, of the shape of x.
        inside_weight: Factors of the differences, of the shape of x; None: 1.
        outside_weight: Factors of the losses, of the shape of x; None: 1.
        sigma: How narrow the squared part is.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        Variable [N, 1].
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
    """Computes cross entropy of softmax in one step, which never overflows: the op of that name.

    Args:
        logits: Unnormalized scores of the classes, floats.
        label: Class numbers with size 1 along axis, int64; with soft_label, probabilities of the shape of logits.
        soft_label: Whether labels are probabilities.
        ignore_index: A class number whose loss is 0.
        numeric_stable_mode: Attribute of the op; it is stable either way.
        return_softmax: Whether to return the probabilities, too.
        axis: The dim of the classes.
        name: Prefix of the names of what the layer makes; None: that of the layer.

    Returns:
        The loss, of the shape of logits with size 1 along axis; with return_softmax (loss, softmax).

    Raises:
        InvalidArgumentError: An argument is no such Variable.
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
