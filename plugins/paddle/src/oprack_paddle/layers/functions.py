"""paddle.nn: layers of functions of paddle.nn.functional, by a table, and a few more."""

from __future__ import annotations

from typing import Any

from oprack import functional as F
from oprack import nn

from oprack_paddle.functions import layers, losses, pooling


def _function_layer(name: str, function: Any, inputs: int, settings: str) -> type:
    """A layer that calls a function with its inputs and these settings: "p=2.0, keepdim=False"."""
    defaults = eval(f"dict({settings})")  # texts of the table below
    takes = f", {settings}" if settings else ""
    source = f"def __init__(self{takes}, name=None):\n    _start(self)\n" + "".join(
        f"    self._{s} = {s}\n" for s in defaults
    )
    known: dict[str, Any] = {"_start": nn.Module.__init__}
    exec(source, known)

    def forward(self: Any, *given: Any) -> Any:
        if len(given) != inputs:
            raise TypeError(f"{name} takes {inputs} tensors; got {len(given)}")
        if name in _OF_TRAINING:
            return function(*given, **{s: getattr(self, f"_{s}") for s in defaults}, training=self.training)
        return function(*given, **{s: getattr(self, f"_{s}") for s in defaults})

    members = {
        "__init__": known["__init__"],
        "forward": forward,
        "__doc__": f"`paddle.nn.functional.{function.__name__}` as a layer.",
    }
    return type(name, (nn.Module,), {**members, "__module__": __name__})


_OF_TRAINING = frozenset(["AlphaDropout", "RReLU"])

Hardsigmoid = _function_layer("Hardsigmoid", layers.hardsigmoid, 1, "")
AlphaDropout = _function_layer("AlphaDropout", layers.alpha_dropout, 1, "p=0.5")
RReLU = _function_layer("RReLU", layers.rrelu, 1, "lower=0.125, upper=1.0 / 3.0")
GaussianNLLLoss = _function_layer(
    "GaussianNLLLoss", losses.gaussian_nll_loss, 3, "full=False, epsilon=1e-6, reduction='mean'"
)
PoissonNLLLoss = _function_layer(
    "PoissonNLLLoss", losses.poisson_nll_loss, 2, "log_input=True, full=False, epsilon=1e-8, reduction='mean'"
)
MultiLabelSoftMarginLoss = _function_layer(
    "MultiLabelSoftMarginLoss", losses.multi_label_soft_margin_loss, 2, "weight=None, reduction='mean'"
)
MultiMarginLoss = _function_layer(
    "MultiMarginLoss", losses.multi_margin_loss, 2, "p=1, margin=1.0, weight=None, reduction='mean'"
)
SoftMarginLoss = _function_layer("SoftMarginLoss", losses.soft_margin_loss, 2, "reduction='mean'")
PairwiseDistance = _function_layer(
    "PairwiseDistance", losses.pairwise_distance, 2, "p=2.0, epsilon=1e-6, keepdim=False"
)
RNNTLoss = _function_layer("RNNTLoss", losses.rnnt_loss, 4, "blank=0, fastemit_lambda=0.001, reduction='mean'")
TripletMarginWithDistanceLoss = _function_layer(
    "TripletMarginWithDistanceLoss",
    losses.triplet_margin_with_distance_loss,
    3,
    "distance_function=None, margin=1.0, swap=False, reduction='mean'",
)


class BCEWithLogitsLoss(nn.Module):
    """The loss of logits against probabilities."""

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None, name: Any = None) -> None:
        super().__init__()
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"BCEWithLogitsLoss: reduction is {reduction!r}; expected 'none', 'mean' or 'sum'")
        self.weight, self.reduction, self.pos_weight = weight, reduction, pos_weight

    def forward(self, logit: Any, label: Any) -> Any:
        """The losses, or their mean or sum."""
        return losses.binary_cross_entropy_with_logits(logit, label, self.weight, self.reduction, self.pos_weight)


class AdaptiveMaxPool1D(nn.Module):
    """The largest elements of so many parts of sequences, and their places if asked."""

    def __init__(self, output_size: Any, return_mask: bool = False, name: Any = None) -> None:
        super().__init__()
        self.output_size, self.return_mask = output_size, return_mask

    def forward(self, input: Any) -> Any:
        """The elements."""
        return pooling.adaptive_max_pool1d(input, self.output_size, self.return_mask)


class _Unpool(nn.Module):
    """The inverse of max pooling."""

    _function: Any = None

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        data_format: str = "",
        output_size: Any = None,
        name: Any = None,
    ) -> None:
        super().__init__()
        self._settings = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "output_size": output_size}

    def forward(self, x: Any, indices: Any) -> Any:
        """The pictures."""
        return type(self)._function(x, indices, **self._settings)


class MaxUnPool1D(_Unpool):
    """The inverse of MaxPool1D with zeros between."""

    _function = staticmethod(pooling.max_unpool1d)


class MaxUnPool2D(_Unpool):
    """The inverse of MaxPool2D with zeros between."""

    _function = staticmethod(pooling.max_unpool2d)


class MaxUnPool3D(_Unpool):
    """The inverse of MaxPool3D with zeros between."""

    _function = staticmethod(pooling.max_unpool3d)


class Softmax2D(nn.Module):
    """Softmax over channels."""

    def __init__(self, name: Any = None) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        """The probabilities."""
        if x.ndim not in (3, 4):
            raise ValueError(f"Softmax2D: x has {x.ndim} dims; expected 3 or 4")
        return F.softmax(x, axis=-3)


class Unflatten(nn.Module):
    """One dim, split into several."""

    def __init__(self, axis: int, shape: Any, name: Any = None) -> None:
        super().__init__()
        self.axis, self.shape = axis, shape

    def forward(self, x: Any) -> Any:
        """The tensor in its new shape."""
        from oprack_paddle.functions.shapes import unflatten

        return unflatten(x, self.axis, self.shape)


class HSigmoidLoss(nn.Module):
    """The loss of hierarchical sigmoid."""

    def __init__(
        self, feature_size: int, num_classes: int, weight_attr: Any = None, bias_attr: Any = None,
        is_custom: bool = False,
        is_sparse: bool = False, name: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_classes < 2 and not is_custom:
            raise ValueError(f"HSigmoidLoss: num_classes is {num_classes}; expected 2 at least")
        self._num_classes, self._is_sparse = num_classes, is_sparse
        rows = num_classes if is_custom else num_classes - 1
        self.weight = self.create_parameter([rows, feature_size], weight_attr)
        self.bias = self.create_parameter([rows, 1], bias_attr, is_bias=True)

    def forward(self, input: Any, label: Any, path_table: Any = None, path_code: Any = None) -> Any:
        """The losses."""
        return losses.hsigmoid_loss(
            input, label, self._num_classes, self.weight, self.bias, path_table, path_code, self._is_sparse
        )
