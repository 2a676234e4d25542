"""Normalisation of the channels of listed points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from oprack import functional as F
from oprack import initializer
from oprack.nn import Module

if TYPE_CHECKING:
    from oprack import Tensor
    from oprack.layers import ParamAttrLike


class BatchNorm(Module):
    """Each channel by the statistics of the listed points in training, by running ones in evaluation."""

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-5,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
        data_format: str = "NDHWC",
        use_global_stats: bool | None = None,
    ) -> None:
        super().__init__()
        self.weight = self.create_parameter([num_features], weight_attr, default_initializer=initializer.Constant(1.0))
        self.bias = self.create_parameter([num_features], bias_attr, is_bias=True)
        self.register_buffer("_mean", np.zeros(num_features, np.float32))
        self.register_buffer("_variance", np.ones(num_features, np.float32))
        self.momentum, self.epsilon, self.data_format = momentum, epsilon, data_format
        self.use_global_stats = use_global_stats

    def _arguments(self) -> dict[str, Any]:
        running = not self.training if self.use_global_stats is None else self.use_global_stats
        return {
            "mean": self._mean,
            "variance": self._variance,
            "scale": self.weight,
            "bias": self.bias,
            "is_test": not self.training,
            "momentum": self.momentum,
            "epsilon": self.epsilon,
            "data_layout": "NHWC",
            "use_global_stats": running,
            "trainable_statistics": False if self.use_global_stats is None else not self.use_global_stats,
            "in_place": {"mean": "mean_out", "variance": "variance_out"},
        }

    def forward(self, x: Tensor) -> Tensor:
        return F.sparse_batch_norm(x, **self._arguments()).out


class SyncBatchNorm(BatchNorm):
    """BatchNorm with the statistics of the points of all ranks."""

    def forward(self, x: Tensor) -> Tensor:
        return F.sparse_sync_batch_norm(x, **self._arguments()).out
