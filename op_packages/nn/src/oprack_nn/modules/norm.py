"""Normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from oprack import functional as F
from oprack import initializer
from oprack.errors import InvalidArgumentError
from oprack.nn import Module

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
    """Per channel, by the statistics of the batch in training, by running ones in evaluation: op batch_norm."""

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
        self.attrs = {
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
    """BatchNorm of rows [N, C] or lines [N, C, L]."""

    ranks = (2, 3)


class BatchNorm2D(_BatchNorm):
    """BatchNorm of images [N, C, H, W]."""

    ranks = (4,)


class BatchNorm3D(_BatchNorm):
    """BatchNorm of volumes [N, C, D, H, W]."""

    ranks = (5,)


class LayerNorm(_Affine):
    """Over the last dims, of sizes normalized_shape: op layer_norm."""

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
    """Over groups of channels: op group_norm."""

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
    """Per image and channel: op instance_norm."""

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
    """InstanceNorm of lines [N, C, L]."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.unsqueeze(2)).squeeze(2)


class InstanceNorm2D(InstanceNorm):
    """InstanceNorm of images [N, C, H, W]."""


class InstanceNorm3D(InstanceNorm):
    """InstanceNorm of volumes [N, C, D, H, W]."""


class LocalResponseNorm(Module):
    r"""$$x_c / (k + \frac{\alpha}{size} \sum_{near c} x^2)^\beta$$ over `size` neighbouring channels: op lrn."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.attrs = {"n": int(size), "alpha": float(alpha) / size, "beta": float(beta), "k": float(k)}

    def forward(self, x: Tensor) -> Tensor:
        return F.lrn(x, **self.attrs).out
