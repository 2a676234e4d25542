"""Kernels of nce and of its gradient."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, KernelContext, RequiredArray, kernel
from oprack.tensor import SelectedRows
from oprack.types import FLOATS


def _chances(sampler: int, classes: int, given: Array | None) -> np.ndarray:
    """[classes], the probability by which each class is drawn as noise."""
    if sampler == 0:
        return np.full(classes, 1 / classes)
    if sampler == 1:
        return np.log((np.arange(classes) + 2) / (np.arange(classes) + 1)) / np.log(classes + 1)
    return np.asarray(given, np.float64).reshape(-1)


def _noise(
    shape: tuple[int, int], chances: np.ndarray, fixed: Sequence[int], generator: np.random.Generator
) -> np.ndarray:
    if fixed:
        return np.broadcast_to(np.asarray(fixed, np.int64), shape)
    drawn = np.searchsorted(np.cumsum(chances), generator.random(shape) * chances.sum(), side="right")
    return np.minimum(drawn, len(chances) - 1)


@kernel("nce", dtypes=FLOATS)
def nce(
    Input: Array,
    Label: Array,
    Weight: Array,
    Bias: Array | None = None,
    SampleWeight: Array | None = None,
    CustomDistProbs: Array | None = None,
    *,
    num_total_classes: int,
    num_neg_samples: int,
    sampler: int,
    seed: int,
    custom_neg_classes: list[int],
    ctx: KernelContext,
) -> tuple[Array, Array, Array]:
    """Labels and noise side by side: a gather of the weights and one product."""
    chances = _chances(sampler, num_total_classes, CustomDistProbs)
    noise = _noise((len(Input), num_neg_samples), chances, custom_neg_classes, ctx.generator(seed))
    labels = np.concatenate([Label.astype(np.int64), noise], axis=1)
    if labels.size and not (0 <= labels.min() and labels.max() < num_total_classes):
        raise InvalidArgumentError(
            f"op nce: labels and noise lie in [{labels.min()}, {labels.max()}]; expected classes in "
            f"[0, {num_total_classes})"
        )
    z = np.matmul(Weight[labels], Input[:, :, None])[..., 0] + (0 if Bias is None else Bias.reshape(-1)[labels])
    o = (1 / (1 + np.exp(-z))).astype(Input.dtype)
    q = (chances[labels] * num_neg_samples).astype(Input.dtype)
    true = np.arange(labels.shape[1]) < Label.shape[1]
    cost = -np.log(np.where(true, o, q) / (o + q)).sum(axis=1, keepdims=True)
    return cost if SampleWeight is None else cost * SampleWeight.reshape(-1, 1), o, labels


def _by_logit(
    Label: Array,
    o: Array,
    labels: Array,
    weight: Array | None,
    probs: Array | None,
    cost_grad: Array,
    ctx: KernelContext,
) -> Array:
    """[N, true + noise]: the gradient of each product."""
    attrs = ctx.attrs
    chances = _chances(attrs["sampler"], attrs["num_total_classes"], probs)
    q = (chances[labels] * attrs["num_neg_samples"]).astype(o.dtype)
    true = np.arange(labels.shape[1]) < Label.shape[1]
    flowing = cost_grad.reshape(-1, 1) * (1 if weight is None else weight.reshape(-1, 1))
    return flowing * np.where(true, q * (o - 1), o * (1 - o)) / (o + q)


@kernel("nce_grad", dtypes=FLOATS)
def nce_grad(
    Input: Array,
    Label: Array,
    Weight: Array,
    SampleLogits: Array,
    SampleLabels: Array,
    SampleWeight: Array | None = None,
    CustomDistProbs: Array | None = None,
    Cost_grad: RequiredArray = None,
    *,
    is_sparse: bool,
    ctx: KernelContext,
) -> dict[str, Array | SelectedRows]:
    """Gathers and sums by class."""
    g = _by_logit(Label, SampleLogits, SampleLabels, SampleWeight, CustomDistProbs, Cost_grad, ctx)
    grads: dict[str, Array | SelectedRows] = {}
    if ctx.wants("Input@GRAD"):
        grads["Input_grad"] = np.matmul(g[:, None], Weight[SampleLabels])[:, 0]
    if ctx.wants("Bias@GRAD"):
        total = np.bincount(SampleLabels.reshape(-1), g.reshape(-1), minlength=len(Weight))
        grads["Bias_grad"] = total.astype(g.dtype)
    if ctx.wants("Weight@GRAD"):
        rows = (g[:, :, None] * Input[:, None]).reshape(-1, Input.shape[1])
        if is_sparse:
            grads["Weight_grad"] = SelectedRows(SampleLabels.reshape(-1), rows, len(Weight))
        else:
            full = np.zeros_like(Weight)
            np.add.at(full, SampleLabels.reshape(-1), rows)
            grads["Weight_grad"] = full
    return grads
