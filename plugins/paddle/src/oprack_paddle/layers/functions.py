"""paddle.nn: layers of functions of paddle.nn.functional, by a table, and a few more."""

from __future__ import annotations

import re
from typing import Any

from oprack import functional as F
from oprack import nn
from oprack.names.paddle import signatures

from oprack_paddle.adapter import parameters
from oprack_paddle.functions import layers, losses, pooling
from oprack_paddle.namespace import module

__all__ = ["Layer"]  # beside what is defined here

Layer = nn.Module
"""The class of all layers itself, so that each is an instance of it."""


def _function_layer(name: str, function: Any, inputs: int = 1) -> type:
    """A layer with Paddle's parameters, which calls the function of its inputs and these settings."""
    text = signatures()[f"nn.{name}"]
    settings = [n for n, _ in parameters(text) if n != "name"]
    source = f"def __init__(self, {text}):\n    _start(self)\n" + "".join(f"    self._{s} = {s}\n" for s in settings)
    known: dict[str, Any] = {"_start": nn.Module.__init__}
    exec(source, known)  # a line of this project's own table

    def forward(self: Any, *given: Any) -> Any:
        if len(given) != inputs:
            raise TypeError(f"{name} takes {inputs} tensors; got {len(given)}")
        called = function if function is not None else _of_paddle(name)
        training = {"training": self.training} if name in _OF_TRAINING else {}
        return called(
            *given, **{_ARGUMENTS.get((name[:3], s), s): getattr(self, f"_{s}") for s in settings}, **training
        )

    members = {
        "__init__": known["__init__"],
        "forward": forward,
        "__doc__": f"`paddle.nn.functional.{_snake(name)}` as a layer.",
    }
    return type(name, (nn.Module,), {**members, "__module__": __name__})


def _snake(name: str) -> str:
    return "pad" if name.startswith("Pad") else re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _of_paddle(name: str) -> Any:
    """The function of Paddle that a layer is named after."""
    return getattr(module("nn.functional"), _snake(name))


_OF_TRAINING = frozenset(["AlphaDropout", "RReLU", "Dropout2D", "Dropout3D"])
_ARGUMENTS = {("Pad", "padding"): "pad"}
"""What a function calls otherwise than its layer does."""

CrossEntropyLoss = _function_layer("CrossEntropyLoss", losses.cross_entropy, 2)
Hardsigmoid = _function_layer("Hardsigmoid", layers.hardsigmoid)
AlphaDropout = _function_layer("AlphaDropout", layers.alpha_dropout)
RReLU = _function_layer("RReLU", layers.rrelu)
GaussianNLLLoss = _function_layer("GaussianNLLLoss", losses.gaussian_nll_loss, 3)
PoissonNLLLoss = _function_layer("PoissonNLLLoss", losses.poisson_nll_loss, 2)
MultiLabelSoftMarginLoss = _function_layer("MultiLabelSoftMarginLoss", losses.multi_label_soft_margin_loss, 2)
MultiMarginLoss = _function_layer("MultiMarginLoss", losses.multi_margin_loss, 2)
SoftMarginLoss = _function_layer("SoftMarginLoss", losses.soft_margin_loss, 2)
PairwiseDistance = _function_layer("PairwiseDistance", losses.pairwise_distance, 2)
RNNTLoss = _function_layer("RNNTLoss", losses.rnnt_loss, 4)
TripletMarginWithDistanceLoss = _function_layer(
    "TripletMarginWithDistanceLoss", losses.triplet_margin_with_distance_loss, 3
)
MaxPool1D, MaxPool2D, MaxPool3D = (_function_layer(f"MaxPool{n}D", None) for n in (1, 2, 3))
AvgPool1D, AvgPool2D, AvgPool3D = (_function_layer(f"AvgPool{n}D", None) for n in (1, 2, 3))
AdaptiveMaxPool1D, AdaptiveMaxPool2D, AdaptiveMaxPool3D = (
    _function_layer(f"AdaptiveMaxPool{n}D", getattr(pooling, f"adaptive_max_pool{n}d")) for n in (1, 2, 3)
)
AdaptiveAvgPool1D, AdaptiveAvgPool2D, AdaptiveAvgPool3D = (
    _function_layer(f"AdaptiveAvgPool{n}D", None) for n in (1, 2, 3)
)
Pad1D, Pad2D, Pad3D = (_function_layer(f"Pad{n}D", None) for n in (1, 2, 3))
Dropout2D, Dropout3D = (_function_layer(f"Dropout{n}D", None) for n in (2, 3))
LocalResponseNorm = _function_layer("LocalResponseNorm", None)


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
