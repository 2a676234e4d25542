"""Activations as modules; each calls one op with the attributes that it was made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.nn import Module

if TYPE_CHECKING:
    from oprack import Tensor


class _Activation(Module):
    """Base of these modules. attrs: of the op `op_type`."""

    op_type = ""

    def __init__(self, **attrs: Any) -> None:
        super().__init__()
        self.attrs = attrs

    def forward(self, x: Tensor) -> Tensor:
        return getattr(F, self.op_type)(x, **self.attrs)

    def extra_repr(self) -> str:
        return ", ".join(f"{k}={v!r}" for k, v in self.attrs.items())


class ELU(_Activation):
    """Op elu; alpha."""

    op_type = "elu"


class GELU(_Activation):
    """Op gelu; approximate."""

    op_type = "gelu"


class Hardsigmoid(_Activation):
    """Op hard_sigmoid; slope, offset."""

    op_type = "hard_sigmoid"


class Hardswish(_Activation):
    """Op hard_swish."""

    op_type = "hard_swish"


class LeakyReLU(_Activation):
    """Op leaky_relu; alpha."""

    op_type = "leaky_relu"


class LogSoftmax(_Activation):
    """Op log_softmax; axis."""

    op_type = "log_softmax"


class ReLU(_Activation):
    """Op relu."""

    op_type = "relu"


class ReLU6(_Activation):
    """Op relu6."""

    op_type = "relu6"


class Sigmoid(_Activation):
    """Op sigmoid."""

    op_type = "sigmoid"


class Softmax(_Activation):
    """Op softmax; axis."""

    op_type = "softmax"


class Softplus(_Activation):
    """Op softplus; beta, threshold."""

    op_type = "softplus"


class Swish(_Activation):
    """Op swish; beta."""

    op_type = "swish"


class Tanh(_Activation):
    """Op tanh."""

    op_type = "tanh"
