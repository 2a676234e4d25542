"""onednn_fc_gru and onednn_fc_lstm: a recurrent layer in one or both directions, with the products in front of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from oprack.kernel import Array, KernelContext, KernelSpecialization, kernel
from oprack.types import FLOATS

from oprack_onednn.chain.parameters import FromConstants
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, OperandError
from oprack_onednn.kernels._recurrent import Cell, Direction, sequences, serves
from oprack_onednn.kernels.declare import onednn_kernel


def gru_layer(arrays: tuple[Array, ...], origin_mode: bool) -> list[Direction]:
    """From WeightX, Weight and Bias of all directions, as the op has them."""
    cell = Cell("gru", origin=origin_mode)
    return [
        Direction(cell, gru_weights(w_state), w_input, bias.reshape(-1))
        for w_input, w_state, bias in zip(*_by_slot(arrays, 3), strict=True)
    ]


def gru_weights(weight: Array) -> Array:
    """The op's Weight as [size, 3, size]: it is a buffer, [size, 2 size] for u and r, then [size, size] for c."""
    size = weight.shape[0]
    buffer, split = weight.reshape(-1), 2 * size * size
    both, candidate = buffer[:split].reshape(size, 2, size), buffer[split:].reshape(size, 1, size)
    return np.concatenate([both, candidate], axis=1)


def lstm_layer(arrays: tuple[Array, ...], use_peepholes: bool) -> list[Direction]:
    """From WeightX, Weight and Bias of all directions, as the op has them."""
    found = []
    for w_input, w_state, bias in zip(*_by_slot(arrays, 4, 7 if use_peepholes else 4), strict=True):
        size = w_state.shape[0]
        rows = bias.reshape(-1, size)
        peepholes = rows[4:] if use_peepholes else None
        cell = Cell("lstm", gates=LSTM_GATES)
        found.append(Direction(cell, lstm_weights(w_state), w_input, rows[:4].reshape(-1), peepholes=peepholes))
    return found


LSTM_GATES = (1, 2, 0, 3)
"""Where i, f, g and o are among the op's gates c', i, f, o."""


def lstm_weights(weight: Array) -> Array:
    """The op's Weight as [size, 4, size], with the gates i, f, g, o."""
    size = weight.shape[0]
    return weight.reshape(size, 4, size)[:, list(LSTM_GATES)]


def _by_slot(arrays: tuple[Array, ...], gates: int, rows_of_bias: int = 3) -> list[tuple[Array, ...]]:
    """WeightX, Weight and Bias, by direction. Raises OperandError when they do not fit together."""
    count = len(arrays) // 3
    found = [arrays[i * count : (i + 1) * count] for i in range(3)]
    for w_input, w_state, bias in zip(*found, strict=True):
        size = w_state.shape[0]
        fits = w_state.shape == (size, gates * size) and w_input.shape[1:] == (gates * size,)
        if not fits or bias.size != rows_of_bias * size or any(a.dtype != FLOAT for a in (w_input, w_state, bias)):
            raise OperandError("weights that do not fit together")
    return found


def _run(
    layers: FromConstants,
    options: Sequence[bool],
    reversals: tuple[bool, ...],
    X: Array,
    WeightX: Sequence[Array],
    Weight: Sequence[Array],
    Bias: Sequence[Array],
    ctx: KernelContext,
) -> Array:
    """Out, or NotImplemented when NumPy should compute it."""
    lod = ctx.lod("X")
    if not lod or not X.size or not X.flags.c_contiguous or not X.flags.aligned or X.ndim != 2:
        return NotImplemented
    if X.dtype != FLOAT or lod[-1][-1] != len(X) or any(w.shape != Weight[0].shape for w in Weight[1:]):
        return NotImplemented
    if not serves() or not THREAD.ready():
        return NotImplemented
    try:
        directions = layers((*WeightX, *Weight, *Bias), *options)
    except OperandError:
        return NotImplemented
    if any(d.inputs != X.shape[1] for d in directions):
        return NotImplemented
    return sequences(directions, X, lod[-1], reversals)


def _specialize(make: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """`specialize` of an op: its weights are made ready once. names: attributes that `make` takes."""

    def specialize(call: KernelSpecialization) -> Callable[..., Any]:
        layers, reversals = FromConstants(make), tuple(call.attrs["is_reverse"])
        options = [call.attrs[name] for name in names]

        def run(
            X: Array, WeightX: Sequence[Array], Weight: Sequence[Array], Bias: Sequence[Array], *, ctx: KernelContext
        ) -> Array:
            if not (LIBRARY.ready or LIBRARY.usable()):
                return NotImplemented
            return _run(layers, options, reversals, X, WeightX, Weight, Bias, ctx)

        return run

    return specialize


def _by_steps(
    X: Array,
    WeightX: Sequence[Array],
    Weight: Sequence[Array],
    Bias: Sequence[Array],
    is_reverse: Sequence[bool],
    ctx: KernelContext,
    op_type: str,
    result: int,
    **attrs: bool,
) -> Array:
    """Direction by direction: the product, then the op."""
    parts = []
    product, lods = {"x_num_col_dims": 1, "y_num_col_dims": 1}, {"Input": [ctx.lod("X")]}
    for w_input, w_state, bias, reverse in zip(WeightX, Weight, Bias, is_reverse, strict=True):
        x = ctx.run_op("mul", {"X": X, "Y": w_input}, product)
        arrays = {"Input": x, "Weight": w_state, "Bias": bias.reshape(1, -1)}
        parts.append(ctx.run_op(op_type, arrays, {"is_reverse": reverse, **attrs}, lods)[result])
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


@kernel("onednn_fc_gru", place="cpu", dtypes=FLOATS)
def reference_fc_gru(
    X: Array,
    WeightX: list[Array],
    Weight: list[Array],
    Bias: list[Array],
    *,
    is_reverse: list[bool],
    origin_mode: bool,
    ctx: KernelContext,
) -> Array:
    return _by_steps(X, WeightX, Weight, Bias, is_reverse, ctx, "gru", 3, origin_mode=origin_mode)


@kernel("onednn_fc_lstm", place="cpu", dtypes=FLOATS)
def reference_fc_lstm(
    X: Array,
    WeightX: list[Array],
    Weight: list[Array],
    Bias: list[Array],
    *,
    is_reverse: list[bool],
    use_peepholes: bool,
    ctx: KernelContext,
) -> Array:
    return _by_steps(X, WeightX, Weight, Bias, is_reverse, ctx, "lstm", 0, use_peepholes=use_peepholes)


_GRU, _LSTM = FromConstants(gru_layer), FromConstants(lstm_layer)


@onednn_kernel("onednn_fc_gru", specialize=_specialize(gru_layer, "origin_mode"))
def fc_gru(
    X: Array,
    WeightX: list[Array],
    Weight: list[Array],
    Bias: list[Array],
    *,
    is_reverse: list[bool],
    origin_mode: bool,
    ctx: KernelContext,
) -> Array:
    return _run(_GRU, (origin_mode,), tuple(is_reverse), X, WeightX, Weight, Bias, ctx)


@onednn_kernel("onednn_fc_lstm", specialize=_specialize(lstm_layer, "use_peepholes"))
def fc_lstm(
    X: Array,
    WeightX: list[Array],
    Weight: list[Array],
    Bias: list[Array],
    *,
    is_reverse: list[bool],
    use_peepholes: bool,
    ctx: KernelContext,
) -> Array:
    return _run(_LSTM, (use_peepholes,), tuple(is_reverse), X, WeightX, Weight, Bias, ctx)
