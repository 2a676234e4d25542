"""Activations as modules; each calls one function with the settings that it was made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack import initializer
from oprack.nn import Module

from oprack_nn.functional import activation as A

if TYPE_CHECKING:
    from oprack import Tensor
    from oprack.layers import ParamAttrLike


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


class CELU(_Activation):
    r"""$$\max(0, x) + \min(0, \alpha (e^{x / \alpha} - 1))$$"""

    op_type = "celu"

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=float(alpha))


class ELU(_Activation):
    r"""$$x$$ where it is positive, else $$\alpha (e^x - 1)$$."""

    op_type = "elu"

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=float(alpha))


class GELU(_Activation):
    r"""$$x \Phi(x)$$ with the normal distribution; approximate: by tanh."""

    op_type = "gelu"

    def __init__(self, approximate: bool = False) -> None:
        super().__init__(approximate=bool(approximate))


class GLU(Module):
    r"""$$a \, \sigma(b)$$ of the two halves of x along a dim."""

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return A.glu(x, self.axis)


class Hardshrink(_Activation):
    """x, with 0 where it is from -threshold to threshold."""

    op_type = "hard_shrink"

    def __init__(self, threshold: float = 0.5) -> None:
        super().__init__(threshold=float(threshold))


class Hardsigmoid(_Activation):
    r"""Op hard_sigmoid; slope, offset: $$\min(1, \max(0, slope \cdot x + offset))$$."""

    op_type = "hard_sigmoid"


class Hardswish(_Activation):
    r"""$$x \min(6, \max(0, x + 3)) / 6$$"""

    op_type = "hard_swish"


class Hardtanh(Module):
    """x cut to between two numbers."""

    def __init__(self, min: float = -1.0, max: float = 1.0) -> None:
        super().__init__()
        self.min, self.max = min, max

    def forward(self, x: Tensor) -> Tensor:
        return A.hardtanh(x, self.min, self.max)


class LeakyReLU(_Activation):
    """x where it is positive, else negative_slope times x; alpha: another name for the slope, that of the op."""

    op_type = "leaky_relu"

    def __init__(self, negative_slope: float = 0.01, alpha: float | None = None) -> None:
        super().__init__(alpha=float(negative_slope if alpha is None else alpha))


class LogSigmoid(_Activation):
    r"""$$-\log(1 + e^{-x})$$"""

    op_type = "logsigmoid"


class LogSoftmax(_Activation):
    r"""$$x_i - \log \sum_j e^{x_j}$$ along a dim."""

    op_type = "log_softmax"

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=int(axis))


class Maxout(_Activation):
    """The largest of every `groups` neighbouring channels."""

    op_type = "maxout"

    def __init__(self, groups: int, axis: int = 1) -> None:
        super().__init__(groups=int(groups), axis=int(axis))


class Mish(_Activation):
    r"""$$x \tanh(\log(1 + e^x))$$"""

    op_type = "mish"


class PReLU(Module):
    """x where it is positive, else weight times x; weight: one number, or one for each of num_parameters channels."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        weight_attr: ParamAttrLike = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__()
        start = initializer.Constant(float(init))
        self.weight = self.create_parameter([num_parameters], weight_attr, default_initializer=start)
        self.data_format = data_format

    def forward(self, x: Tensor) -> Tensor:
        return A.prelu(x, self.weight, self.data_format)


class ReLU(_Activation):
    r"""$$\max(0, x)$$"""

    op_type = "relu"


class ReLU6(_Activation):
    r"""$$\min(6, \max(0, x))$$"""

    op_type = "relu6"


class SELU(_Activation):
    r"""$$scale \cdot x$$ where it is positive, else $$scale \cdot \alpha (e^x - 1)$$."""

    op_type = "selu"

    def __init__(self, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772) -> None:
        super().__init__(scale=float(scale), alpha=float(alpha))


class Sigmoid(_Activation):
    r"""$$1 / (1 + e^{-x})$$"""

    op_type = "sigmoid"


class Silu(_Activation):
    r"""$$x / (1 + e^{-x})$$"""

    op_type = "silu"


class SiLU(Silu):
    r"""$$x / (1 + e^{-x})$$; Paddle's spelling is Silu."""


class Softmax(_Activation):
    r"""$$e^{x_i} / \sum_j e^{x_j}$$ along a dim."""

    op_type = "softmax"

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=int(axis))


class Softplus(_Activation):
    r"""$$\log(1 + e^{\beta x}) / \beta$$, and x itself where that is beyond the threshold."""

    op_type = "softplus"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=float(beta), threshold=float(threshold))


class Softshrink(_Activation):
    """x moved towards 0 by the threshold, at most to 0."""

    op_type = "softshrink"

    def __init__(self, threshold: float = 0.5) -> None:
        super().__init__(lambda_=float(threshold))


class Softsign(_Activation):
    """$$x / (1 + |x|)$$"""

    op_type = "softsign"


class Swish(_Activation):
    r"""Op swish; beta: $$x / (1 + e^{-\beta x})$$."""

    op_type = "swish"


class Tanh(_Activation):
    r"""$$\tanh x$$"""

    op_type = "tanh"


class Tanhshrink(_Activation):
    r"""$$x - \tanh x$$"""

    op_type = "tanh_shrink"


class ThresholdedReLU(_Activation):
    """x where it is beyond the threshold, else 0."""

    op_type = "thresholded_relu"

    def __init__(self, threshold: float = 1.0) -> None:
        super().__init__(threshold=float(threshold))
