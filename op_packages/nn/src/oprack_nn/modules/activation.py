"""Activations as modules; each calls one function with the settings that it was made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack import initializer
from oprack.nn import Module

from oprack_nn.functional import activation as A
from oprack_nn.functional.common import lod_of

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
    r"""Applies $$\max(0, x) + \min(0, \alpha (e^{x / \alpha} - 1))$$ (Barron, 2017).

    Args:
        alpha: The limit towards minus infinity, negated.
    """

    op_type = "celu"

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=float(alpha))


class ELU(_Activation):
    r"""Applies the exponential linear unit: $$x$$ where it is positive, else $$\alpha (e^x - 1)$$.

    Args:
        alpha: The limit towards minus infinity, negated.
    """

    op_type = "elu"

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=float(alpha))


class GELU(_Activation):
    r"""Applies the Gaussian error linear unit, $$x \Phi(x)$$ with the normal distribution function $$\Phi$$.

    Args:
        approximate: Whether to compute $$\Phi$$ by its approximation with tanh.
    """

    op_type = "gelu"

    def __init__(self, approximate: bool = False) -> None:
        super().__init__(approximate=bool(approximate))


class GLU(Module):
    r"""Applies the gated linear unit, $$a \, \sigma(b)$$ of the two halves of x along a dim.

    Args:
        axis: The dim that is halved.
    """

    def __init__(self, axis: int = -1) -> None:
        super().__init__()
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        return A.glu(x, self.axis)


class Hardshrink(_Activation):
    """Replaces elements between -threshold and threshold by 0.

    Args:
        threshold: The largest magnitude that becomes 0.
    """

    op_type = "hard_shrink"

    def __init__(self, threshold: float = 0.5) -> None:
        super().__init__(threshold=float(threshold))


class Hardsigmoid(_Activation):
    r"""Applies a piecewise linear approximation of the sigmoid: $$\min(1, \max(0, slope \cdot x + offset))$$.

    Args:
        attrs: Attributes of op hard_sigmoid: slope, offset.
    """

    op_type = "hard_sigmoid"


class Hardswish(_Activation):
    r"""Applies a piecewise form of swish (Howard et al., 2019): $$x \min(6, \max(0, x + 3)) / 6$$.

    Args:
        attrs: Attributes of op hard_swish: threshold, scale, offset.
    """

    op_type = "hard_swish"


class Hardtanh(Module):
    """Cuts elements to the interval [min, max].

    Args:
        min: The lower bound.
        max: The upper bound.
    """

    def __init__(self, min: float = -1.0, max: float = 1.0) -> None:
        super().__init__()
        self.min, self.max = min, max

    def forward(self, x: Tensor) -> Tensor:
        return A.hardtanh(x, self.min, self.max)


class LeakyReLU(_Activation):
    """Applies the leaky rectified linear unit: x where it is positive, else negative_slope times x.

    Args:
        negative_slope: The slope for negative elements.
        alpha: Another name of negative_slope, that of op leaky_relu, which goes before it.
    """

    op_type = "leaky_relu"

    def __init__(self, negative_slope: float = 0.01, alpha: float | None = None) -> None:
        super().__init__(alpha=float(negative_slope if alpha is None else alpha))


class LogSigmoid(_Activation):
    r"""Takes the logarithm of the sigmoid without overflow, $$-\log(1 + e^{-x})$$.

    Args:
        attrs: Attributes of op logsigmoid.
    """

    op_type = "logsigmoid"


class LogSoftmax(_Activation):
    r"""Takes the logarithm of softmax along a dim, $$x_i - \log \sum_j e^{x_j}$$.

    Args:
        axis: The dim.
    """

    op_type = "log_softmax"

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=int(axis))


class Maxout(_Activation):
    """Takes the maximum of every `groups` neighbouring channels (Goodfellow et al., 2013).

    Args:
        groups: How many channels become one.
        axis: The dim of the channels, a multiple of groups in size.
    """

    op_type = "maxout"

    def __init__(self, groups: int, axis: int = 1) -> None:
        super().__init__(groups=int(groups), axis=int(axis))

    def forward(self, x: Tensor) -> Tensor:
        return lod_of(x, super().forward(x))


class Mish(_Activation):
    r"""Applies $$x \tanh(\log(1 + e^x))$$ (Misra, 2019).

    Args:
        attrs: Attributes of op mish.
    """

    op_type = "mish"


class PReLU(Module):
    """Applies a leaky rectified linear unit with a learned slope: x where it is positive, else weight times x.

    Args:
        num_parameters: Number of slopes: 1, or that of the channels.
        init: What the slopes start from.
        weight_attr: Attributes of the parameter weight.
        data_format: "NCHW", "NCL" and the like when channels are dim 1, "NHWC" and the like when they are last.
    """

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
    r"""Applies the rectified linear unit, $$\max(0, x)$$.

    Args:
        attrs: Attributes of op relu.
    """

    op_type = "relu"


class ReLU6(_Activation):
    r"""Cuts elements to the interval [0, 6], $$\min(6, \max(0, x))$$.

    Args:
        attrs: Attributes of op relu6.
    """

    op_type = "relu6"


class SELU(_Activation):
    r"""Applies the scaled exponential linear unit (Klambauer et al., 2017).

    $$scale \cdot x$$ where it is positive, else $$scale \cdot \alpha (e^x - 1)$$.

    Args:
        scale: The factor of all elements.
        alpha: The factor of the exponential part.
    """

    op_type = "selu"

    def __init__(self, scale: float = 1.0507009873554805, alpha: float = 1.6732632423543772) -> None:
        super().__init__(scale=float(scale), alpha=float(alpha))


class Sigmoid(_Activation):
    """Applies the logistic function, $$1 / (1 + e^{-x})$$.

    Args:
        attrs: Attributes of op sigmoid.
    """

    op_type = "sigmoid"


class Silu(_Activation):
    """Applies the sigmoid linear unit, $$x / (1 + e^{-x})$$.

    Args:
        attrs: Attributes of op silu.
    """

    op_type = "silu"


class SiLU(Silu):
    """Applies the sigmoid linear unit, $$x / (1 + e^{-x})$$; Paddle's spelling is Silu.

    Args:
        attrs: Attributes of op silu.
    """


class Softmax(_Activation):
    r"""Normalizes along a dim to positive numbers of sum 1, $$e^{x_i} / \sum_j e^{x_j}$$.

    Args:
        axis: The dim.
    """

    op_type = "softmax"

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=int(axis))


class Softplus(_Activation):
    r"""Applies a smooth form of ReLU: $$\log(1 + e^{\beta x}) / \beta$$.

    Args:
        beta: How sharp the bend at 0 is.
        threshold: Where beta * x is beyond it, the result is x itself.
    """

    op_type = "softplus"

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=float(beta), threshold=float(threshold))


class Softshrink(_Activation):
    """Moves elements towards 0 by threshold; those between -threshold and threshold become 0.

    Args:
        threshold: The distance, at least 0.
    """

    op_type = "softshrink"

    def __init__(self, threshold: float = 0.5) -> None:
        super().__init__(lambda_=float(threshold))


class Softsign(_Activation):
    """Applies $$x / (1 + |x|)$$, which lies between -1 and 1.

    Args:
        attrs: Attributes of op softsign.
    """

    op_type = "softsign"


class Swish(_Activation):
    r"""Applies $$x / (1 + e^{-\beta x})$$ (Ramachandran et al., 2017).

    Args:
        attrs: Attributes of op swish: beta.
    """

    op_type = "swish"


class Tanh(_Activation):
    r"""Applies the hyperbolic tangent, $$\tanh x$$.

    Args:
        attrs: Attributes of op tanh.
    """

    op_type = "tanh"


class Tanhshrink(_Activation):
    r"""Subtracts the hyperbolic tangent, $$x - \tanh x$$.

    Args:
        attrs: Attributes of op tanh_shrink.
    """

    op_type = "tanh_shrink"


class ThresholdedReLU(_Activation):
    """Keeps the elements beyond a threshold; the others become 0.

    Args:
        threshold: The threshold.
    """

    op_type = "thresholded_relu"

    def __init__(self, threshold: float = 1.0) -> None:
        super().__init__(threshold=float(threshold))
