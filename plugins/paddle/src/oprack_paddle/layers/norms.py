"""paddle.nn: layers that normalize, where Paddle's take more than oprack's."""

from __future__ import annotations

from typing import Any

import oprack
from oprack import functional as F
from oprack import nn

from oprack_paddle.adapter import Adapted
from oprack_paddle.functions._tools import dtype_name

_FIRST = {"NCL": "NCHW", "NLC": "NHWC", "NC": "NCHW"}
"""Names of layouts of sequences, and those that the op has for them."""


def _batch_norm(name: str, default: str) -> type:
    """BatchNorm1D, 2D or 3D, whose layouts have names of their own."""
    base: Any = getattr(nn, name)

    class BatchNorm(base, metaclass=Adapted):
        _adapts = base

        def __init__(
            self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-05, weight_attr: Any = None,
            bias_attr: Any = None, data_format: str = default, use_global_stats: Any = None, name: Any = None,
        ) -> None:  # fmt: skip
            layout = _FIRST.get(data_format, data_format)
            base.__init__(self, num_features, momentum, epsilon, weight_attr, bias_attr, layout, bool(use_global_stats))

    BatchNorm.__name__ = BatchNorm.__qualname__ = name
    BatchNorm.__doc__ = base.__doc__
    return BatchNorm


BatchNorm1D = _batch_norm("BatchNorm1D", "NCL")
BatchNorm2D = _batch_norm("BatchNorm2D", "NCHW")
BatchNorm3D = _batch_norm("BatchNorm3D", "NCDHW")


class BatchNorm(nn.BatchNorm, metaclass=Adapted):
    """Normalizes each channel over the batch, and applies an activation if one is named."""

    _adapts = nn.BatchNorm

    def __init__(
        self, num_channels: int, act: Any = None, is_test: bool = False, momentum: float = 0.9, epsilon: float = 1e-05,
        param_attr: Any = None, bias_attr: Any = None, dtype: Any = "float32", data_layout: str = "NCHW",
        in_place: bool = False, moving_mean_name: Any = None, moving_variance_name: Any = None,
        do_model_average_for_mean_and_var: bool = True, use_global_stats: bool = False,
        trainable_statistics: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(num_channels, momentum, epsilon, param_attr, bias_attr, data_layout, use_global_stats)
        self._act, self._is_test = act, is_test and not trainable_statistics
        if dtype_name(dtype) == "float64":
            self.to(dtype="float64")
        if self._is_test:
            self.eval()

    def forward(self, input: Any) -> Any:
        """The normalized tensor."""
        found = super().forward(input)
        return getattr(F, self._act)(found) if self._act else found


class GroupNorm(nn.GroupNorm, metaclass=Adapted):
    """Normalizes over groups of channels of each example; channels come first or last."""

    _adapts = nn.GroupNorm

    def __init__(
        self, num_groups: int, num_channels: int, epsilon: float = 1e-05, weight_attr: Any = None,
        bias_attr: Any = None, data_format: str = "NCHW", name: Any = None,
    ) -> None:  # fmt: skip
        if data_format not in ("NCHW", "NHWC"):
            raise ValueError(f"GroupNorm: data_format is {data_format!r}; expected 'NCHW' or 'NHWC'")
        super().__init__(num_groups, num_channels, epsilon, weight_attr, bias_attr)
        self._layout = data_format

    def forward(self, input: Any) -> Any:
        """The normalized tensor."""
        settings = {"groups": self.groups, "epsilon": self.epsilon, "data_layout": self._layout}
        return F.group_norm(input, self.weight, self.bias, **settings)


class SpectralNorm(nn.Module):
    """A weight, divided by its largest singular value."""

    def __init__(
        self, weight_shape: Any, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, dtype: Any = "float32"
    ) -> None:
        super().__init__()
        self._settings = {"dim": dim, "power_iters": power_iters, "eps": eps}
        rows, size = int(weight_shape[dim]), 1
        for n in weight_shape:
            size *= int(n)
        for name, length in (("weight_u", rows), ("weight_v", size // rows)):
            vector = oprack.Parameter(oprack.randn([length], dtype=dtype_name(dtype)))
            vector.stop_gradient = True
            setattr(self, name, vector)

    def forward(self, x: Any) -> Any:
        """The weight."""
        return F.spectral_norm(x, self.weight_u, self.weight_v, **self._settings)


class SyncBatchNorm(BatchNorm2D):  # type: ignore[valid-type]
    """BatchNorm; the statistics are those of this rank's examples."""

    @classmethod
    def convert_sync_batchnorm(cls, layer: Any) -> Any:
        """A net as it is: its BatchNorms count the examples of their rank."""
        return layer
