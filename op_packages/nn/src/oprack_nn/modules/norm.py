"""Normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack import functional as F
from oprack import initializer
from oprack.errors import InvalidArgumentError
from oprack.nn import Module

from oprack_nn.functional.common import is_rows

if TYPE_CHECKING:
    from oprack import Tensor
    from oprack.layers import ParamAttrLike


class _Affine(Module):
    """A scale and a bias of some shape; attributes False leave them out."""

    def _make(self, shape: list[int], weight_attr: ParamAttrLike, bias_attr: ParamAttrLike) -> None:
        ones = initializer.Constant(1.0)
        self.weight = (
            None if weight_attr is False else self.create_parameter(shape, weight_attr, default_initializer=ones)
        )
        self.bias = None if bias_attr is False else self.create_parameter(shape, bias_attr, is_bias=True)


class BatchNorm(_Affine):
    """Normalizes each channel over the batch (Ioffe and Szegedy, 2015): op batch_norm.

    In training by the statistics of the batch, in evaluation by the running ones, which are the buffers mean and
    variance.

    Args:
        num_features: Number of channels.
        momentum: The weight of the old running statistics in each step of training.
        epsilon: Added to the variance against division by zero.
        weight_attr: Attributes of the parameter weight (the scale), which starts from 1; False: no scale.
        bias_attr: Attributes of the parameter bias, which starts from 0; False: no bias.
        data_format: "NCHW" when channels are dim 1, "NHWC" when they are last.
        use_global_stats: Whether the running statistics are used in training too.
    """

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        data_format: str = "NCHW",
        use_global_stats: bool = False,
    ) -> None:
        super().__init__()
        self._make([num_features], weight_attr, bias_attr)
        self.register_buffer("mean", np.zeros(num_features, np.float32))
        self.register_buffer("variance", np.ones(num_features, np.float32))
        self.attrs: dict[str, Any] = {
            "momentum": momentum,
            "epsilon": epsilon,
            "data_layout": data_format,
            "use_global_stats": use_global_stats,
        }

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(
            x,
            mean=self.mean,
            variance=self.variance,
            scale=self.weight,
            bias=self.bias,
            is_test=not self.training,
            in_place={"Mean": "MeanOut", "Variance": "VarianceOut"},
            **self.attrs,
        ).y


class _BatchNorm(BatchNorm):
    """BatchNorm that refuses inputs of another rank."""

    ranks: tuple[int, ...] = ()

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in self.ranks:
            raise InvalidArgumentError(
                f"{type(self).__name__}: x has shape {list(x.shape)} of rank {x.ndim}; expected rank "
                f"{' or '.join(map(str, self.ranks))}"
            )
        return super().forward(x)


class BatchNorm1D(_BatchNorm):
    """Normalizes each channel of rows [N, C] or sequences [N, C, L] over the batch; see BatchNorm.

    Args:
        num_features: Number of channels.
        momentum: The weight of the old running statistics in each step of training.
        epsilon: Added to the variance against division by zero.
        weight_attr: Attributes of the parameter weight (the scale), which starts from 1; False: no scale.
        bias_attr: Attributes of the parameter bias, which starts from 0; False: no bias.
        data_format: "NCHW" when channels are dim 1, "NHWC" when they are last.
        use_global_stats: Whether the running statistics are used in training too.
    """

    ranks = (2, 3)


class BatchNorm2D(_BatchNorm):
    """Normalizes each channel of images [N, C, H, W] over the batch; see BatchNorm.

    Args:
        num_features: Number of channels.
        momentum: The weight of the old running statistics in each step of training.
        epsilon: Added to the variance against division by zero.
        weight_attr: Attributes of the parameter weight (the scale), which starts from 1; False: no scale.
        bias_attr: Attributes of the parameter bias, which starts from 0; False: no bias.
        data_format: "NCHW" when channels are dim 1, "NHWC" when they are last.
        use_global_stats: Whether the running statistics are used in training too.
    """

    ranks = (4,)


class BatchNorm3D(_BatchNorm):
    """Normalizes each channel of volumes [N, C, D, H, W] over the batch; see BatchNorm.

    Args:
        num_features: Number of channels.
        momentum: The weight of the old running statistics in each step of training.
        epsilon: Added to the variance against division by zero.
        weight_attr: Attributes of the parameter weight (the scale), which starts from 1; False: no scale.
        bias_attr: Attributes of the parameter bias, which starts from 0; False: no bias.
        data_format: "NCHW" when channels are dim 1, "NHWC" when they are last.
        use_global_stats: Whether the running statistics are used in training too.
    """

    ranks = (5,)


class LayerNorm(_Affine):
    """Normalizes over the last dims of each example (Ba et al., 2016): op layer_norm.

    Args:
        normalized_shape: The sizes of these dims; one number: the last dim alone.
        epsilon: Added to the variance against division by zero.
        weight_attr: Attributes of the parameter weight (the scale), which starts from 1; False: no scale.
        bias_attr: Attributes of the parameter bias, which starts from 0; False: no bias.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        epsilon: float = 1e-5,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
    ) -> None:
        super().__init__()
        dims = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self.rank, self.epsilon = len(dims), epsilon
        self._make([math.prod(dims)], weight_attr, bias_attr)

    def forward(self, x: Tensor) -> Tensor:
        axis = len(x.shape) - self.rank
        return F.layer_norm(x, self.weight, self.bias, begin_norm_axis=axis, epsilon=self.epsilon)


class GroupNorm(_Affine):
    """Normalizes over groups of channels of each example [N, C, ...] (Wu and He, 2018): op group_norm.

    Args:
        num_groups: Number of groups.
        num_channels: Number of channels, a multiple of num_groups.
        epsilon: Added to the variance against division by zero.
        weight_attr: Attributes of the parameter weight (the scale), which starts from 1; False: no scale.
        bias_attr: Attributes of the parameter bias, which starts from 0; False: no bias.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        epsilon: float = 1e-5,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
    ) -> None:
        super().__init__()
        self.groups, self.epsilon = num_groups, epsilon
        self._make([num_channels], weight_attr, bias_attr)

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x, self.weight, self.bias, groups=self.groups, epsilon=self.epsilon)


class InstanceNorm(_Affine):
    """Normalizes each channel of each example [N, C, ...] (Ulyanov et al., 2016): op instance_norm.

    Args:
        num_features: Number of channels.
        epsilon: Added to the variance against division by zero.
        weight_attr: Attributes of the parameter weight (the scale), which starts from 1; False: no scale.
        bias_attr: Attributes of the parameter bias, which starts from 0; False: no bias.
    """

    def __init__(
        self,
        num_features: int,
        epsilon: float = 1e-5,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
    ) -> None:
        super().__init__()
        self.epsilon = epsilon
        self._make([num_features], weight_attr, bias_attr)

    def forward(self, x: Tensor) -> Tensor:
        return F.instance_norm(x, self.weight, self.bias, epsilon=self.epsilon)


class InstanceNorm1D(InstanceNorm):
    """Normalizes each channel of each sequence [N, C, L]; see InstanceNorm.

    It takes rows [N, C] with LoD as well, which are those of the sequences one after the other.

    Args:
        num_features: Number of channels.
        epsilon: Added to the variance against division by zero.
        weight_attr: Attributes of the parameter weight (the scale), which starts from 1; False: no scale.
        bias_attr: Attributes of the parameter bias, which starts from 0; False: no bias.
    """

    def forward(self, x: Tensor) -> Tensor:
        return self._of_rows(x) if is_rows(x) else super().forward(x.unsqueeze(2)).squeeze(2)

    def _of_rows(self, x: Tensor) -> Tensor:
        centred = x - self._means(x)
        y = centred / F.sqrt(self._means(centred * centred) + self.epsilon)
        y = y if self.weight is None else y * self.weight
        return y if self.bias is None else y + self.bias

    @staticmethod
    def _means(x: Tensor) -> Tensor:
        """In each row the mean of its sequence."""
        return F.sequence_expand_as(F.sequence_pool(x, pooltype="AVERAGE"), x)


class InstanceNorm2D(InstanceNorm):
    """Normalizes each channel of each image [N, C, H, W]; see InstanceNorm.

    Args:
        num_features: Number of channels.
        epsilon: Added to the variance against division by zero.
        weight_attr: Attributes of the parameter weight (the scale), which starts from 1; False: no scale.
        bias_attr: Attributes of the parameter bias, which starts from 0; False: no bias.
    """


class InstanceNorm3D(InstanceNorm):
    """Normalizes each channel of each volume [N, C, D, H, W]; see InstanceNorm.

    Args:
        num_features: Number of channels.
        epsilon: Added to the variance against division by zero.
        weight_attr: Attributes of the parameter weight (the scale), which starts from 1; False: no scale.
        bias_attr: Attributes of the parameter bias, which starts from 0; False: no bias.
    """


class LocalResponseNorm(Module):
    r"""Divides channels by a power of the sum of squares of their neighbours (Krizhevsky et al., 2012): op lrn.

    $$x_c / (k + \frac{\alpha}{size} \sum_{near c} x^2)^\beta$$

    Args:
        size: How many neighbouring channels, the channel itself among them.
        alpha: The factor of the mean square.
        beta: The exponent.
        k: Added to the mean square.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.attrs = {"n": int(size), "alpha": float(alpha) / size, "beta": float(beta), "k": float(k)}

    def forward(self, x: Tensor) -> Tensor:
        return F.lrn(x, **self.attrs).out
