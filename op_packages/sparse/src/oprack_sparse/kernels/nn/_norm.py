"""Kernels that both batch norms share: the dense op over the listed values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext
from oprack.tensor import SparseCooTensor

from oprack_sparse.kernels._patterns import values_at

NAMES = ("is_test", "momentum", "epsilon", "use_global_stats", "trainable_statistics")


def _attrs(ctx: KernelContext) -> dict[str, Any]:
    return {name: ctx.attrs[name] for name in NAMES} | {"data_layout": "NHWC"}


def norm_by(dense: str) -> Callable[..., tuple[Any, ...]]:
    """The kernel that normalises the values by a dense op."""

    def norm(
        x: SparseCooTensor, mean: Array, variance: Array, scale: Array, bias: Array, *, ctx: KernelContext
    ) -> tuple[Any, ...]:
        given = {"X": x.values, "Mean": mean, "Variance": variance, "Scale": scale, "Bias": bias}
        y, *statistics = ctx.run_op(dense, given, _attrs(ctx))
        return (x.with_values(y), *statistics[:4], np.empty(0, x.values.dtype))

    return norm


def grad_by(dense: str) -> Callable[..., dict[str, Any]]:
    """The kernel of the gradient, by that of a dense op."""

    def norm_grad(
        x: SparseCooTensor,
        scale: Array,
        mean_out: Array,
        variance_out: Array,
        saved_mean: Array,
        saved_variance: Array,
        out_grad: SparseCooTensor,
        *,
        ctx: KernelContext,
    ) -> dict[str, Any]:
        given = {
            "X": x.values,
            "Scale": scale,
            "Mean": mean_out,
            "Variance": variance_out,
            "SavedMean": saved_mean,
            "SavedVariance": saved_variance,
            "Y@GRAD": values_at(out_grad, x),
        }
        found = ctx.run_op(dense, given, _attrs(ctx))
        by_x, by_scale, by_bias = (found[name] for name in ("X_grad", "Scale_grad", "Bias_grad"))
        return {"x_grad": x.with_values(by_x), "scale_grad": by_scale, "bias_grad": by_bias}

    return norm_grad
