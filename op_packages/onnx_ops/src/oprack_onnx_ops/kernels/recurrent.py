"""Kernels of ops.recurrent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from oprack.kernel import Array, kernel
from oprack.tensor import numpy_dtype
from oprack.types import FLOATS

Activation = Callable[[Array], Array]


def _sigmoid(x: Array) -> Array:
    return 0.5 * (np.tanh(0.5 * x) + 1)


_ACTIVATIONS: dict[str, Callable[[Array, float, float], Array]] = {
    "relu": lambda x, a, b: np.maximum(x, 0),
    "tanh": lambda x, a, b: np.tanh(x),
    "sigmoid": lambda x, a, b: _sigmoid(x),
    "affine": lambda x, a, b: a * x + b,
    "leakyrelu": lambda x, a, b: np.where(x < 0, a * x, x),
    "thresholdedrelu": lambda x, a, b: np.where(x > a, x, 0),
    "scaledtanh": lambda x, a, b: a * np.tanh(b * x),
    "hardsigmoid": lambda x, a, b: np.clip(a * x + b, 0, 1),
    "elu": lambda x, a, b: np.where(x < 0, a * np.expm1(x), x),
    "softsign": lambda x, a, b: x / (1 + np.abs(x)),
    "softplus": lambda x, a, b: np.log1p(np.exp(x)),
}
_PARAMETERS = {"affine": (1.0, 0.0), "leakyrelu": (0.01, 0.0), "thresholdedrelu": (1.0, 0.0), "hardsigmoid": (0.2, 0.5)}


class _Layer(NamedTuple):
    """Attributes of a layer; what its directions have in common."""

    hidden_size: int
    direction: str
    activations: list[str]
    activation_alpha: list[float]
    activation_beta: list[float]
    clip: float
    layout: bool

    def functions(self, place: int, defaults: Sequence[str]) -> list[Activation]:
        """The activations of a direction."""
        names = list(self.activations) or list(defaults) * 2
        count = len(defaults)
        return [self._function(names[i].lower(), i) for i in range(place * count, place * count + count)]

    def _function(self, name: str, i: int) -> Activation:
        if name not in _ACTIVATIONS:
            raise NotImplementedError(f"activation {name!r}; expected one of {', '.join(_ACTIVATIONS)}")
        a, b = _PARAMETERS.get(name, (1.0, 1.0))
        a = self.activation_alpha[i] if i < len(self.activation_alpha) else a
        b = self.activation_beta[i] if i < len(self.activation_beta) else b
        bound = self.clip
        return lambda x: _ACTIVATIONS[name](np.clip(x, -bound, bound) if bound else x, a, b)


Step = Callable[[Array, list[Array]], list[Array]]


def _walk(
    x: Array, states: list[Array], step: Step, lengths: Array | None, backwards: bool
) -> tuple[Array, list[Array]]:
    """Go through time; beyond the length of a row its state stays and its result is 0.

    Args:
        x: [steps, batch, n], what the input gives each step.
        states: [batch, hidden] each; the first one is the result.
        step: From a row of x and states to states.
        lengths: [batch].
        backwards: From the end.
    """
    out = np.zeros((x.shape[0], *states[0].shape), states[0].dtype)
    for t in range(x.shape[0])[:: -1 if backwards else 1]:
        new = step(x[t], states)
        if lengths is not None:
            there = (t < lengths)[:, None]
            new = [np.where(there, n, s) for n, s in zip(new, states, strict=True)]
            out[t] = np.where(there, new[0], 0)
        else:
            out[t] = new[0]
        states = new
    return out, states


def _run(
    layer: _Layer,
    X: Array,
    lengths: Array | None,
    states: list[Array | None],
    make: Callable[[int], tuple[Array, Step]],
) -> tuple[Array, list[Array]]:
    """All directions; make(place) gives what the input contributes for [steps, batch, ...], and the step."""
    directions, swapped = 2 if layer.direction == "bidirectional" else 1, layer.layout
    batch = X.shape[0] if swapped else X.shape[1]
    outs, lasts = [], []
    for place in range(directions):
        first = []
        for state in states:
            if state is None:
                first.append(np.zeros((batch, layer.hidden_size), X.dtype))
            else:
                first.append(state[:, place] if swapped else state[place])
        given, step = make(place)
        out, last = _walk(given, first, step, lengths, layer.direction == "reverse" or place == 1)
        outs.append(out)
        lasts.append(last)
    y = np.stack(outs, 1)
    ends = [np.stack([last[i] for last in lasts], 1 if swapped else 0) for i in range(len(states))]
    return (y.transpose(2, 0, 1, 3).copy() if swapped else y), ends


def _products(X: Array, W: Array, B: Array | None, place: int, gates: int, hidden: int, swapped: bool) -> Array:
    """[steps, batch, gates * hidden]: the input's part, with its bias."""
    x = np.swapaxes(X, 0, 1) if swapped else X
    out = x @ W[place].T
    return out if B is None else out + B[place, : gates * hidden]


def _bias(B: Array | None, place: int, gates: int, hidden: int) -> Any:
    return 0 if B is None else B[place, gates * hidden :]


@kernel("onnx_rnn", place="cpu", dtypes=FLOATS)
def rnn(
    X: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    *,
    layer: _Layer,
) -> tuple[Array, Array]:
    n = layer.hidden_size

    def make(place: int) -> tuple[Array, Step]:
        (f,) = layer.functions(place, ["tanh"])
        bias = _bias(B, place, 1, n)
        return _products(X, W, B, place, 1, n, layer.layout), lambda x, s: [f(x + s[0] @ R[place].T + bias)]

    y, (h,) = _run(layer, X, sequence_lens, [initial_h], make)
    return y, h


@kernel("onnx_gru", place="cpu", dtypes=FLOATS)
def gru(
    X: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    *,
    layer: _Layer,
    linear_before_reset: bool,
) -> tuple[Array, Array]:
    n = layer.hidden_size

    def make(place: int) -> tuple[Array, Step]:
        f, g = layer.functions(place, ["sigmoid", "tanh"])
        bias = np.zeros(3 * n, X.dtype) if B is None else _bias(B, place, 3, n)
        gates, candidate = R[place][: 2 * n].T, R[place][2 * n :].T

        def step(x: Array, states: list[Array]) -> list[Array]:
            (h,) = states
            zr = f(x[:, : 2 * n] + h @ gates + bias[: 2 * n])
            z, r = zr[:, :n], zr[:, n:]
            if linear_before_reset:
                new = g(x[:, 2 * n :] + r * (h @ candidate + bias[2 * n :]))
            else:
                new = g(x[:, 2 * n :] + (r * h) @ candidate + bias[2 * n :])
            return [(1 - z) * new + z * h]

        return _products(X, W, B, place, 3, n, layer.layout), step

    y, (h,) = _run(layer, X, sequence_lens, [initial_h], make)
    return y, h


@kernel("onnx_lstm", place="cpu", dtypes=FLOATS)
def lstm(
    X: Array,
    W: Array,
    R: Array,
    B: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    P: Array | None = None,
    *,
    layer: _Layer,
    input_forget: bool,
) -> tuple[Array, Array, Array]:
    n = layer.hidden_size

    def make(place: int) -> tuple[Array, Step]:
        f, g, h_of = layer.functions(place, ["sigmoid", "tanh", "tanh"])
        bias, recurrent = _bias(B, place, 4, n), R[place].T
        peep = np.zeros((3, n), X.dtype) if P is None else P[place].reshape(3, n)

        def step(x: Array, states: list[Array]) -> list[Array]:
            h, c = states
            gates = x + h @ recurrent + bias
            i = f(gates[:, :n] + peep[0] * c)
            forget = 1 - i if input_forget else f(gates[:, 2 * n : 3 * n] + peep[2] * c)
            cell = forget * c + i * g(gates[:, 3 * n :])
            o = f(gates[:, n : 2 * n] + peep[1] * cell)
            return [o * h_of(cell), cell]

        return _products(X, W, B, place, 4, n, layer.layout), step

    y, (h, c) = _run(layer, X, sequence_lens, [initial_h, initial_c], make)
    return y, h, c


# Fourier transforms ---------------------------------------------------------------------------------------------------
def _complex(x: Array) -> Array:
    return x[..., 0] if x.shape[-1] == 1 else x[..., 0] + 1j * x[..., 1]


def _pair(x: Array, dtype: np.dtype) -> Array:
    return np.stack([x.real, x.imag], -1).astype(dtype)


@kernel("onnx_dft", place="cpu")
def dft(
    input: Array,
    dft_length: Array | None = None,
    axis: Array | None = None,
    *,
    inverse: bool,
    onesided: bool,
) -> Array:
    along = -2 if axis is None else int(axis.reshape(-1)[0])
    along = along if along >= 0 else input.ndim + along
    n = None if dft_length is None else int(dft_length.reshape(-1)[0])
    x = _complex(input)
    if inverse and onesided:
        return np.fft.irfft(x, n, along)[..., None].astype(input.dtype)
    if inverse:
        return _pair(np.fft.ifft(x, n, along), input.dtype)
    return _pair((np.fft.rfft if onesided else np.fft.fft)(x, n, along), input.dtype)


@kernel("onnx_stft", place="cpu")
def stft(
    signal: Array,
    frame_step: Array,
    window: Array | None = None,
    frame_length: Array | None = None,
    *,
    onesided: bool,
) -> Array:
    step = int(frame_step.reshape(-1)[0])
    if frame_length is not None:
        length = int(frame_length.reshape(-1)[0])
    else:
        length = signal.shape[1] if window is None else window.size
    x = _complex(signal)
    count = 1 + (x.shape[1] - length) // step
    frames = x[:, np.arange(count)[:, None] * step + np.arange(length)]
    if window is not None:
        frames = frames * window
    found = np.fft.rfft(frames) if onesided and not np.iscomplexobj(frames) else np.fft.fft(frames)
    return _pair(found[..., : length // 2 + 1] if onesided else found, signal.dtype)


@kernel("onnx_mel_weight_matrix", place="cpu")
def mel_weight_matrix(
    num_mel_bins: Array,
    dft_length: Array,
    sample_rate: Array,
    lower_edge_hertz: Array,
    upper_edge_hertz: Array,
    *,
    output_datatype: int,
) -> Array:
    bins, points, rate = (int(v.reshape(-1)[0]) for v in (num_mel_bins, dft_length, sample_rate))
    low, high = (2595 * np.log10(1 + float(v.reshape(-1)[0]) / 700) for v in (lower_edge_hertz, upper_edge_hertz))
    mels = np.arange(bins + 2) * ((high - low) / (bins + 2)) + low
    hertz = 700 * (10 ** (mels / 2595) - 1)
    places = ((points + 1) * hertz // rate).astype(np.int64)
    rows = np.arange(points // 2 + 1)[:, None]
    first, centre, last = places[:-2], places[1:-1], places[2:]
    with np.errstate(divide="ignore", invalid="ignore"):
        rising = np.where(first == centre, rows == centre, (rows - first) / (centre - first))
        falling = (last - rows) / (last - centre)
    out = np.where((rows >= first) & (rows <= centre), rising, 0.0)
    out = np.where((rows >= centre) & (rows < last) & (centre != last), falling, out)
    return out.astype(numpy_dtype(output_datatype))
