"""Kernels of linear_chain_crf."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import host, offsets_of, segment_sum
from oprack_sequence.kernels.crf import crf_sequences

if TYPE_CHECKING:
    from oprack_sequence.kernels._lod import Packing


@kernel("linear_chain_crf", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def linear_chain_crf(
    Emission: Array,
    Transition: Array,
    Label: Array,
    Length: Array | None = None,
    *,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    """The forward recursion over all sequences at once, each row normalised against overflow."""
    packing, lengths = crf_sequences(ctx, Emission, Length)
    rows, tags = xp.asarray(packing.rows), Emission.shape[-1]
    x = Emission.reshape(-1, tags)
    top = x.max(axis=1, keepdims=True) if len(x) else x[:, :1]
    exps = xp.exp(x - top)
    transition_exps = xp.exp(Transition)
    packed, norms, before = exps[rows], xp.empty((len(rows), 1), x.dtype), None
    for s, e in packing.steps:
        a = packed[s:e]
        a *= transition_exps[0] if before is None else before[: e - s] @ transition_exps[2:]
        norms[s:e] = a.sum(axis=1, keepdims=True)
        a /= norms[s:e]
        before = a
    alpha = xp.zeros_like(x)
    alpha[rows] = packed
    # log of the partition function: what was divided out, and the step to the end
    by_sequence = xp.asarray(np.lexsort((packing.time, packing.sequence)))
    log_z = segment_sum((top[rows] + xp.log(norms))[by_sequence], offsets_of(lengths), xp)
    ends, filled = _last_rows(packing, lengths), np.flatnonzero(lengths)
    log_z[xp.asarray(filled)] += xp.log(packed[xp.asarray(ends[filled])] @ transition_exps[1][:, None])
    score = _path_scores(x, Transition, _labels(Label, packing, tags, ctx), packing, lengths, xp)
    return (
        alpha.reshape(Emission.shape),
        exps.reshape(Emission.shape),
        transition_exps,
        log_z - score,
    )


@kernel("linear_chain_crf_grad", place=("cpu", "cuda"), dtypes=FLOATS, deterministic={"cpu"})
def linear_chain_crf_grad(
    Label: Array,
    Alpha: Array,
    EmissionExps: Array,
    TransitionExps: Array,
    LogLikelihood_grad: Array,
    Length: Array | None = None,
    *,
    ctx: KernelContext,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    """The backward recursion over all sequences at once, then both marginals from two products."""
    packing, lengths = crf_sequences(ctx, Alpha, Length)
    rows, tags = xp.asarray(packing.rows), Alpha.shape[-1]
    alpha, x = Alpha.reshape(-1, tags)[rows], EmissionExps.reshape(-1, tags)[rows]
    stop, follow = TransitionExps[1], TransitionExps[2:]
    beta = xp.empty_like(alpha)
    running, after = 0, None
    for s, e in reversed(packing.steps):
        beta[s + running : e] = stop
        if running:
            beta[s : s + running] = after @ follow.T
        beta[s:e] /= beta[s:e].sum(axis=1, keepdims=True)
        after, running = beta[s:e] * x[s:e], e - s
    label = xp.asarray(_labels(Label, packing, tags, ctx))
    weight = LogLikelihood_grad.reshape(-1)[xp.asarray(packing.sequence)][:, None]
    marginal = alpha * beta
    marginal *= weight / marginal.sum(axis=1, keepdims=True)
    every = xp.arange(len(label))
    marginal[every, label] -= weight[:, 0]
    emission_grad = xp.zeros((Alpha.size // tags, tags), Alpha.dtype)
    emission_grad[rows] = marginal
    transition_grad = xp.zeros_like(TransitionExps)
    if packing.sizes:
        first = packing.sizes[0]
        transition_grad[0] = marginal[:first].sum(axis=0)
        ends = _last_rows(packing, lengths)
        transition_grad[1] = marginal[xp.asarray(ends[ends >= 0])].sum(axis=0)
        previous = packing.previous(alpha, None, xp)[first:]
        into = (beta * x)[first:]
        norm = ((previous @ follow) * into).sum(axis=1, keepdims=True)
        pairs = follow * (previous.T @ (into * (weight[first:] / norm)))
        came_from = packing.previous(label[:, None], None, xp)[first:, 0]
        xp.add.at(pairs, (came_from, label[first:]), -weight[first:, 0])
        transition_grad[2:] = pairs
    return emission_grad.reshape(Alpha.shape), transition_grad


def _last_rows(packing: Packing, lengths: Array) -> Array:
    """Packed row of each sequence's last row; -1 for an empty one."""
    rank = np.empty(len(lengths), np.int64)
    rank[packing.order] = np.arange(len(lengths))
    starts = np.asarray(packing.starts)
    return np.where(lengths > 0, starts[np.maximum(lengths - 1, 0)] + rank, -1)


def _labels(Label: Array, packing: Packing, tags: int, ctx: KernelContext) -> Array:
    """Label of each packed row, on the host."""
    labels = host(Label).reshape(-1)[packing.rows]
    if len(labels) and not (0 <= labels.min() and labels.max() < tags):
        raise InvalidArgumentError(
            f"op {ctx.op_type}: Label lies in [{labels.min()}, {labels.max()}]; expected from 0 to {tags - 1}, since "
            f"Emission has {tags} columns"
        )
    return labels


def _path_scores(
    x: Array, transition: Array, labels: Array, packing: Packing, lengths: Array, xp: ArrayModule
) -> Array:
    """[n, 1]: score of the given path of each sequence."""
    first = packing.sizes[0] if packing.sizes else 0
    gained = x[xp.asarray(packing.rows), xp.asarray(labels)]
    gained[:first] += transition[0, xp.asarray(labels[:first])]
    before = packing.previous(labels[:, None], None, np)[first:, 0]
    gained[first:] += transition[xp.asarray(before + 2), xp.asarray(labels[first:])]
    ends = _last_rows(packing, lengths)
    ends = ends[ends >= 0]
    gained[xp.asarray(ends)] += transition[1, xp.asarray(labels[ends])]
    scores = xp.zeros((len(lengths), 1), x.dtype)
    xp.add.at(scores, (xp.asarray(packing.sequence), 0), gained)
    return scores
