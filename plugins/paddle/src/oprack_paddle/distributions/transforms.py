"""Functions that change a random number, with their inverses and the logarithms of their slopes."""

from __future__ import annotations

import math
from typing import Any

import oprack
from oprack import functional as F

from oprack_paddle.distributions.base import Distribution, tensors

Tensor = Any


class Transform:
    """A function of random numbers; `_event` is the number of dims that it changes together."""

    _event = 0

    def __call__(self, input: Any) -> Any:
        """A tensor, changed; a distribution, with this transform; or another transform before this one."""
        if isinstance(input, Distribution):
            return TransformedDistribution(input, [self])
        return ChainTransform([self, input]) if isinstance(input, Transform) else self.forward(input)

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        raise NotImplementedError

    def inverse(self, y: Tensor) -> Tensor:
        """The change back."""
        raise NotImplementedError

    def _slope(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} is no one-to-one function: it has no slope")

    def forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        """The logarithm of the slope at x."""
        return self._slope(x)

    def inverse_log_det_jacobian(self, y: Tensor) -> Tensor:
        """The logarithm of the slope of the inverse at y."""
        return -self._slope(self.inverse(y))

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of what comes out."""
        return tuple(shape)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of what went in."""
        return tuple(shape)


class AbsTransform(Transform):
    """The absolute value, whose inverse has two values."""

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        return F.abs(x)

    def inverse(self, y: Tensor) -> Any:
        """Both values."""
        return -y, y


class AffineTransform(Transform):
    """loc + scale * x."""

    def __init__(self, loc: Any, scale: Any) -> None:
        self.loc, self.scale = tensors(loc, scale)

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        return self.loc + self.scale * x

    def inverse(self, y: Tensor) -> Tensor:
        """The change back."""
        return (y - self.loc) / self.scale

    def _slope(self, x: Tensor) -> Tensor:
        return oprack.log(F.abs(self.scale)) + oprack.zeros_like(x)


class ExpTransform(Transform):
    """exp(x)."""

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        return F.exp(x)

    def inverse(self, y: Tensor) -> Tensor:
        """The change back."""
        return oprack.log(y)

    def _slope(self, x: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """x to a power."""

    def __init__(self, power: Any) -> None:
        (self.power,) = tensors(power)

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        return x**self.power

    def inverse(self, y: Tensor) -> Tensor:
        """The change back."""
        return y ** (1 / self.power)

    def _slope(self, x: Tensor) -> Tensor:
        return oprack.log(F.abs(self.power * x ** (self.power - 1)))


class SigmoidTransform(Transform):
    """The sigmoid."""

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        return F.sigmoid(x)

    def inverse(self, y: Tensor) -> Tensor:
        """The change back."""
        return oprack.log(y) - F.log1p(-y)

    def _slope(self, x: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class TanhTransform(Transform):
    """tanh(x)."""

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        return F.tanh(x)

    def inverse(self, y: Tensor) -> Tensor:
        """The change back."""
        return F.atanh(y)

    def _slope(self, x: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class SoftmaxTransform(Transform):
    """Softmax over the last dim, which is no one-to-one function."""

    _event = 1

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        return F.softmax(x, axis=-1)

    def inverse(self, y: Tensor) -> Tensor:
        """One of what it may have been."""
        return oprack.log(y)


class StickBreakingTransform(Transform):
    """n numbers as n + 1 probabilities."""

    _event = 1

    def _offset(self, n: int) -> Tensor:
        return oprack.log(oprack.arange(n, 0, -1).astype("float32"))

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        z = F.sigmoid(x - self._offset(x.shape[-1]).astype(x.dtype))
        left = F.cumprod(1 - z, dim=x.ndim - 1)
        ones = oprack.ones_like(z[..., :1])
        return oprack.concat([z, ones], -1) * oprack.concat([ones, left], -1)

    def inverse(self, y: Tensor) -> Tensor:
        """The change back."""
        head = y[..., :-1]
        left = 1 - oprack.cumsum(head, -1)
        return oprack.log(head / left) + self._offset(head.shape[-1]).astype(y.dtype)

    def _slope(self, x: Tensor) -> Tensor:
        y = self.forward(x)
        shifted = x - self._offset(x.shape[-1]).astype(x.dtype)
        return (-shifted + log_sigmoid(shifted) + oprack.log(y[..., :-1])).sum(-1)

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of what comes out."""
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of what went in."""
        return (*shape[:-1], shape[-1] - 1)


def log_sigmoid(x: Tensor) -> Tensor:
    """The logarithm of the sigmoid."""
    return -F.softplus(-x)


class ReshapeTransform(Transform):
    """The same numbers in another shape."""

    def __init__(self, in_event_shape: Any, out_event_shape: Any) -> None:
        if math.prod(in_event_shape) != math.prod(out_event_shape):
            raise ValueError(
                f"ReshapeTransform: {tuple(in_event_shape)} and {tuple(out_event_shape)} have different sizes"
            )
        self.in_event_shape, self.out_event_shape = tuple(in_event_shape), tuple(out_event_shape)
        self._event = len(self.in_event_shape)

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        return x.reshape([*self._batch(x.shape, self.in_event_shape), *self.out_event_shape])

    def inverse(self, y: Tensor) -> Tensor:
        """The change back."""
        return y.reshape([*self._batch(y.shape, self.out_event_shape), *self.in_event_shape])

    @staticmethod
    def _batch(shape: Any, event: tuple[int, ...]) -> list[int]:
        return list(shape[: len(shape) - len(event)])

    def _slope(self, x: Tensor) -> Tensor:
        return oprack.zeros(self._batch(x.shape, self.in_event_shape), x.dtype)

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of what comes out."""
        return (*self._batch(shape, self.in_event_shape), *self.out_event_shape)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of what went in."""
        return (*self._batch(shape, self.out_event_shape), *self.in_event_shape)


class IndependentTransform(Transform):
    """A transform, of which some dims more count as one event."""

    def __init__(self, base: Transform, reinterpreted_batch_rank: int) -> None:
        self._base, self._more = base, reinterpreted_batch_rank
        self._event = base._event + reinterpreted_batch_rank
        self.forward, self.inverse = base.forward, base.inverse  # type: ignore[method-assign]

    def _slope(self, x: Tensor) -> Tensor:
        return self._base.forward_log_det_jacobian(x).sum(list(range(-self._more, 0)))


class ChainTransform(Transform):
    """One transform after the other."""

    def __init__(self, transforms: Any) -> None:
        self.transforms = list(transforms)
        self._event = max((t._event for t in self.transforms), default=0)

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        for transform in self.transforms:
            x = transform.forward(x)
        return x

    def inverse(self, y: Tensor) -> Tensor:
        """The change back."""
        for transform in reversed(self.transforms):
            y = transform.inverse(y)
        return y

    def _slope(self, x: Tensor) -> Tensor:
        total: Any = 0.0
        for transform in self.transforms:
            slope, rest = transform.forward_log_det_jacobian(x), self._event - transform._event
            total = total + (slope.sum(list(range(-rest, 0))) if rest else slope)
            x = transform.forward(x)
        return total

    def forward_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of what comes out."""
        for transform in self.transforms:
            shape = transform.forward_shape(shape)
        return tuple(shape)

    def inverse_shape(self, shape: Any) -> tuple[int, ...]:
        """The shape of what went in."""
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        return tuple(shape)


class StackTransform(Transform):
    """A transform for each part of an axis."""

    def __init__(self, transforms: Any, axis: int = 0) -> None:
        self.transforms, self.axis = list(transforms), axis

    def _each(self, name: str, x: Tensor) -> Tensor:
        parts = oprack.unstack(x, self.axis)
        return oprack.stack([getattr(t, name)(p) for t, p in zip(self.transforms, parts, strict=True)], self.axis)

    def forward(self, x: Tensor) -> Tensor:
        """The change."""
        return self._each("forward", x)

    def inverse(self, y: Tensor) -> Tensor:
        """The change back."""
        return self._each("inverse", y)

    def _slope(self, x: Tensor) -> Tensor:
        return self._each("forward_log_det_jacobian", x)


class TransformedDistribution(Distribution):
    """A distribution, changed by transforms."""

    def __init__(self, base: Distribution, transforms: Any) -> None:
        self._base, self._chain = base, ChainTransform(transforms)
        self._transforms = self._chain.transforms
        shape = self._chain.forward_shape((*base.batch_shape, *base.event_shape))
        self._dims = max(len(base.event_shape), self._chain._event)
        cut = len(shape) - self._dims
        super().__init__(shape[:cut], shape[cut:])

    def sample(self, shape: Any = ()) -> Tensor:
        """Samples."""
        return self._chain.forward(self._base.sample(shape))

    def rsample(self, shape: Any = ()) -> Tensor:
        """Samples through which gradients flow."""
        return self._chain.forward(self._base.rsample(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density at a value."""
        x = self._chain.inverse(value)
        slope, log = self._chain.forward_log_det_jacobian(x), self._base.log_prob(x)
        more_slope, more_log = self._dims - self._chain._event, self._dims - len(self._base.event_shape)
        slope = slope.sum(list(range(-more_slope, 0))) if more_slope else slope
        return (log.sum(list(range(-more_log, 0))) if more_log else log) - slope
