"""Kernels of rnn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.types import FLOATS

from oprack_sequence.kernels._lod import host
from oprack_sequence.kernels.recurrent import SAVED, Layer, row_mask


@kernel("rnn", place=("cpu", "cuda"), dtypes=FLOATS)
def rnn(
    Input: Array,
    PreState: list[Array],
    WeightList: list[Array],
    SequenceLength: Array | None = None,
    *,
    dropout_prob: float,
    is_bidirec: bool,
    hidden_size: int,
    num_layers: int,
    mode: str,
    seed: int,
    is_test: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | list[Array] | None]:
    """Run layer by layer; each direction takes one matrix product for all steps and one loop over time."""
    size = hidden_size, num_layers * (2 if is_bidirec else 1), 2 if is_bidirec else 1
    inputs = Input, PreState, WeightList, SequenceLength
    return run_layers(*inputs, size, mode, None if is_test else (dropout_prob, seed), Layer, ctx, xp)


def run_layers(
    Input: Array,
    PreState: Sequence[Array],
    WeightList: Sequence[Array],
    SequenceLength: Array | None,
    size: tuple[int, ...],
    mode: str,
    training: tuple[float, int] | None,
    layer: type[Any],
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | list[Array] | None]:
    """Compute the outputs of rnn.

    Args:
        Input: [steps, batch, columns].
        PreState: The initial states.
        WeightList: The weights, then the biases, in the order of layers and directions.
        SequenceLength: Number of valid steps of each sequence; None means all.
        size: (columns of a state, directions of all layers together, directions of a layer).
        mode: The op's attribute.
        training: (probability, seed) of dropout; None for inference.
        layer: The class that runs one direction of a layer.
        ctx: The kernel's context.
        xp: The array library.
    """
    (hidden_size, count, directions), is_test = size, training is None
    dropout_prob, seed = training or (0.0, 0)
    steps, batch = Input.shape[:2]
    mask = _mask(SequenceLength, steps, batch, ctx, xp)
    layers = _layers(WeightList, count, directions, mode, mask, xp, layer)
    dropout: RequiredArray = None
    reserve: RequiredArray = None
    if not is_test:
        dropout = _dropout_mask((steps, batch, directions * hidden_size), dropout_prob, ctx.generator(seed), xp)
        reserve = xp.empty((len(layers), steps, batch, (SAVED[mode] + 1) * hidden_size), Input.dtype)
    states = [s.copy() for s in PreState]
    x = Input
    with np.errstate(over="ignore"):
        for first in range(0, len(layers), directions):
            if first and not is_test:
                x = _dropped(x, dropout, dropout_prob)
            outs = []
            for k in range(first, first + directions):
                c0 = PreState[1][k] if mode == "LSTM" else None
                saved = None if is_test else reserve[k]
                out, h, c = layers[k].forward(x, PreState[0][k], c0, saved)
                outs.append(out)
                states[0][k] = h
                if mode == "LSTM":
                    states[1][k] = c
            x = outs[0] if directions == 1 else xp.concatenate(outs, axis=2)
    return {"Out": x, "DropoutState": dropout, "State": states, "Reserve": reserve}


@kernel("rnn_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def rnn_grad(
    Input: Array,
    PreState: list[Array],
    WeightList: list[Array],
    Reserve: Array,
    Out_grad: Array,
    State_grad: list[Array],
    SequenceLength: Array | None = None,
    DropoutState: RequiredArray = None,
    *,
    dropout_prob: float,
    is_bidirec: bool,
    hidden_size: int,
    num_layers: int,
    mode: str,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array | Sequence[Array | None]]:
    """Backpropagate layer by layer, from the last one."""
    directions = 2 if is_bidirec else 1
    steps, batch = Input.shape[:2]
    mask = _mask(SequenceLength, steps, batch, ctx, xp)
    layers = _layers(WeightList, num_layers * directions, directions, mode, mask, xp)
    state_grads = [g if g is not None else xp.zeros_like(s) for s, g in _paired(PreState, State_grad)]
    pre_state_grads = [xp.zeros_like(s) for s in PreState]
    weight_grads: list[Array | None] = [None] * len(WeightList)
    d_out = Out_grad
    for first in range(len(layers) - directions, -1, -directions):
        if first:
            below = Reserve[first - directions : first, :, :, -hidden_size:]
            x = _dropped(xp.concatenate(list(below), axis=2), DropoutState, dropout_prob)
        else:
            x = Input
        d_x = xp.zeros_like(x)
        for k in range(first, first + directions):
            columns = slice((k - first) * hidden_size, (k - first + 1) * hidden_size)
            c0, dc = (PreState[1][k], state_grads[1][k]) if mode == "LSTM" else (None, None)
            g = layers[k].backward(x, PreState[0][k], c0, Reserve[k], d_out[:, :, columns], state_grads[0][k], dc)
            d_x += g.x
            weight_grads[2 * k], weight_grads[2 * k + 1] = g.w_ih, g.w_hh
            biases = 2 * len(layers) + 2 * k
            weight_grads[biases], weight_grads[biases + 1] = g.b_ih, g.b_hh
            pre_state_grads[0][k] = g.h0
            if mode == "LSTM":
                pre_state_grads[1][k] = g.c0
        d_out = _dropped(d_x, DropoutState, dropout_prob) if first else d_x
    return {"Input@GRAD": d_out, "PreState@GRAD": pre_state_grads, "WeightList@GRAD": weight_grads}


def _paired(states: Sequence[Array], grads: Sequence[Array]) -> list[tuple[Array, Array]]:
    """Pairs of each state and its gradient, or None."""
    return [(s, grads[i] if i < len(grads) else None) for i, s in enumerate(states)]


def _layers(
    weights: Sequence[Array],
    count: int,
    directions: int,
    mode: str,
    mask: Array | None,
    xp: ArrayModule,
    layer: type[Any] = Layer,
) -> list[Layer]:
    """The directions of all layers, in the order of WeightList."""
    biases = weights[2 * count :]
    return [
        layer(
            mode,
            weights[2 * k],
            weights[2 * k + 1],
            biases[2 * k],
            biases[2 * k + 1],
            directions == 2 and k % 2 == 1,
            mask,
            xp,
        )
        for k in range(count)
    ]


def _mask(SequenceLength: Array | None, steps: int, batch: int, ctx: KernelContext, xp: ArrayModule) -> Array | None:
    """The mask of steps within their sequences; None when all are."""
    if SequenceLength is None:
        return None
    lengths = host(SequenceLength).reshape(-1)
    if len(lengths) != batch or (lengths < 0).any() or (lengths > steps).any():
        raise InvalidArgumentError(
            f"op {ctx.op_type}: SequenceLength is {lengths.tolist()}; expected {batch} lengths from 0 to {steps}"
        )
    return row_mask(lengths, steps, xp)


def _dropout_mask(shape: tuple[int, ...], probability: float, generator: np.random.Generator, xp: ArrayModule) -> Array:
    """A uint8 mask: 1 where an element is retained."""
    if probability == 0:
        return xp.ones(shape, xp.uint8)
    return xp.asarray((generator.random(shape) >= probability).astype(np.uint8))


def _dropped(x: Array, mask: Array, probability: float) -> Array:
    """x with dropped elements set to zero and the others scaled up; applied to a gradient, its own derivative."""
    if probability == 0:
        return x
    scale = 0 if probability == 1 else 1 / (1 - probability)
    return x * mask.astype(x.dtype) * x.dtype.type(scale)
