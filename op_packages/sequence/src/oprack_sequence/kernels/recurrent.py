"""Recurrent networks: over whole sequences, over padded batches, one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from oprack.kernel import Array, ArrayModule, KernelContext, RequiredArray, kernel
from oprack.types import FLOATS


# activations ----------------------------------------------------------------------------------------------------------
# Activations of recurrent cells: computed in place, with derivatives in terms of the result.
@dataclass(frozen=True)
class Activation:
    """apply(x, xp): x becomes f(x). slope(y, xp): f'(x) where y = f(x)."""

    apply: Callable[[Any, Any], None]
    slope: Callable[[Any, Any], Any]


def _sigmoid(x: Array, xp: ArrayModule) -> None:
    # large negative x overflows in exp and gives 1 / inf = 0, which is right; callers silence the warning
    xp.negative(x, out=x)
    xp.exp(x, out=x)
    x += 1
    xp.reciprocal(x, out=x)


def _tanh(x: Array, xp: ArrayModule) -> None:
    xp.tanh(x, out=x)


def _relu(x: Array, xp: ArrayModule) -> None:
    xp.maximum(x, 0, out=x)


def _identity(x: Array, xp: ArrayModule) -> None:
    pass


ACTIVATIONS = {
    "identity": Activation(_identity, lambda y, xp: xp.ones_like(y)),
    "sigmoid": Activation(_sigmoid, lambda y, xp: y * (1 - y)),
    "tanh": Activation(_tanh, lambda y, xp: 1 - y * y),
    "relu": Activation(_relu, lambda y, xp: (y > 0).astype(y.dtype)),
}

"""By the names that op attributes use; gru_unit numbers them in this order."""


# gru cell -------------------------------------------------------------------------------------------------------------
# One time step of a GRU with gates in the order u, r, c, forward and back.
@dataclass(frozen=True)
class GruCell:
    """Weights and attributes of a cell of D units. w_gates: [D, 2 D]. w_candidate: [D, D]."""

    w_gates: Any
    w_candidate: Any
    gate: str
    candidate: str
    origin_mode: bool
    xp: Any

    @classmethod
    def of(cls, Weight: Array, gate: str, candidate: str, origin_mode: bool, xp: ArrayModule) -> GruCell:
        """From a Weight as Paddle lays it out: [D, 2 D] for u and r, then [D, D] for c, in one buffer."""
        size = Weight.shape[0]
        buffer = Weight.reshape(-1)
        split = 2 * size * size
        w_gates, w_candidate = buffer[:split].reshape(size, 2 * size), buffer[split:].reshape(size, size)
        return cls(w_gates, w_candidate, gate, candidate, origin_mode, xp)

    @property
    def size(self) -> int:
        return int(self.w_candidate.shape[0])

    def forward(self, g: Array, h_prev: Array | None, reset: Array, h: Array) -> None:
        """Turn the pre-activations g into gates, in place, and fill h and, if there is an h_prev, reset = r h_prev."""
        xp, n = self.xp, self.size
        u, r, c, ur = g[:, :n], g[:, n : 2 * n], g[:, 2 * n :], g[:, : 2 * n]
        gate, activation = ACTIVATIONS[self.gate].apply, ACTIVATIONS[self.candidate].apply
        if h_prev is None:
            gate(ur, xp)
            activation(c, xp)
            xp.multiply(u, c, out=h)
            if self.origin_mode:
                xp.subtract(c, h, out=h)
            return
        ur += h_prev @ self.w_gates
        gate(ur, xp)
        xp.multiply(r, h_prev, out=reset)
        c += reset @ self.w_candidate
        activation(c, xp)
        new, old = (h_prev, c) if self.origin_mode else (c, h_prev)
        xp.subtract(new, old, out=h)
        h *= u
        h += old

    def backward(self, g: Array, h_prev: Array, dh: Array, d: Array) -> Array:
        """Fill d, the gradient before the gates' activations, from that of h; returns that of h_prev."""
        n = self.size
        u, r, c = g[:, :n], g[:, n : 2 * n], g[:, 2 * n :]
        keep = u if self.origin_mode else 1 - u
        d_ur, d_c = d[:, : 2 * n], d[:, 2 * n :]
        d_c[...] = dh * (1 - keep) * ACTIVATIONS[self.candidate].slope(c, self.xp)
        d_reset = d_c @ self.w_candidate.T
        d_ur[:, :n] = dh * (h_prev - c if self.origin_mode else c - h_prev)
        d_ur[:, n:] = d_reset * h_prev
        d_ur *= ACTIVATIONS[self.gate].slope(g[:, : 2 * n], self.xp)
        return dh * keep + d_reset * r + d_ur @ self.w_gates.T

    def weight_grad(self, d_gates: Array, h_prev: Array, reset: Array) -> Array:
        """Gradient of Weight, in its layout, from all rows."""
        n = self.size
        parts = [(h_prev.T @ d_gates[:, : 2 * n]).reshape(-1), (reset.T @ d_gates[:, 2 * n :]).reshape(-1)]
        return self.xp.concatenate(parts).reshape(n, 3 * n)


# lstm cell ------------------------------------------------------------------------------------------------------------
# One time step of an LSTM with gates in the order c', i, f, o and optional peepholes, forward and back.
class LstmAttrs(NamedTuple):
    """Attributes of lstm and lstmp."""

    use_peepholes: bool
    is_reverse: bool
    gate_activation: str
    cell_activation: str
    candidate_activation: str
    cell_clip: float = 0.0


@dataclass(frozen=True)
class LstmCell:
    """Attributes and peepholes of a cell of D units. peepholes: p_i, p_f, p_o or None. clip: bound of c, 0 is none."""

    size: int
    peepholes: tuple[Any, Any, Any] | None
    gate: str
    candidate: str
    cell: str
    xp: Any
    clip: float = 0.0

    @classmethod
    def of(cls, Bias: Array, size: int, attrs: LstmAttrs, xp: ArrayModule) -> LstmCell:
        """From a Bias [1, 7 D] or [1, 4 D]."""
        p = Bias.reshape(-1)[4 * size :]
        peepholes = (p[:size], p[size : 2 * size], p[2 * size :]) if attrs.use_peepholes else None
        activations = attrs.gate_activation, attrs.candidate_activation, attrs.cell_activation
        return cls(size, peepholes, *activations, xp=xp, clip=attrs.cell_clip)

    def split(self, g: Array) -> tuple[Any, Any, Any, Any]:
        """Columns c', i, f, o."""
        n = self.size
        return g[:, :n], g[:, n : 2 * n], g[:, 2 * n : 3 * n], g[:, 3 * n :]

    def forward(self, g: Array, c_prev: Array | None, c: Array, c_act: Array, h: Array) -> None:
        """Turn the pre-activations g into gates, in place, and fill c, c_act = cell activation of c, and h."""
        xp, gate = self.xp, ACTIVATIONS[self.gate].apply
        candidate, i, f, o = self.split(g)
        if self.peepholes and c_prev is not None:
            i += c_prev * self.peepholes[0]
            f += c_prev * self.peepholes[1]
        ACTIVATIONS[self.candidate].apply(candidate, xp)
        gate(g[:, self.size : 3 * self.size], xp)
        xp.multiply(i, candidate, out=c)
        if c_prev is not None:
            c += f * c_prev
        if self.clip > 0:
            xp.clip(c, -self.clip, self.clip, out=c)
        if self.peepholes:
            o += c * self.peepholes[2]
        gate(o, xp)
        c_act[...] = c
        ACTIVATIONS[self.cell].apply(c_act, xp)
        xp.multiply(o, c_act, out=h)

    def backward(self, g: Array, c_prev: Array, c: Array, c_act: Array, dh: Array, dc: Array, d: Array) -> Array:
        """Fill d, the gradient before the gates' activations, from that of h and (in place) of c; that of c_prev."""
        gate = ACTIVATIONS[self.gate].slope
        candidate, i, f, o = self.split(g)
        d_candidate, d_i, d_f, d_o = self.split(d)
        d_o[...] = dh * c_act * gate(o, self.xp)
        dc += dh * o * ACTIVATIONS[self.cell].slope(c_act, self.xp)
        if self.peepholes:
            dc += d_o * self.peepholes[2]
        if self.clip > 0:
            dc *= abs(c) < self.clip
        d_candidate[...] = dc * i * ACTIVATIONS[self.candidate].slope(candidate, self.xp)
        d_i[...] = dc * candidate * gate(i, self.xp)
        d_f[...] = dc * c_prev * gate(f, self.xp)
        dc_prev = dc * f
        if self.peepholes:
            dc_prev += d_i * self.peepholes[0] + d_f * self.peepholes[1]
        return dc_prev

    def bias_grad(self, d_gates: Array, c_prev: Array, c: Array) -> Array:
        """Gradient of Bias: of b and, with peepholes, of p_i, p_f, p_o."""
        parts = [d_gates.sum(axis=0)]
        if self.peepholes:
            _, d_i, d_f, d_o = self.split(d_gates)
            parts += [(d_i * c_prev).sum(axis=0), (d_f * c_prev).sum(axis=0), (d_o * c).sum(axis=0)]
        return self.xp.concatenate(parts)[None]


# rnn layer ------------------------------------------------------------------------------------------------------------
# One direction of one recurrent layer over a padded, time-major batch, forward and back, for each kind of cell.
SAVED = {"RNN_TANH": 0, "RNN_RELU": 0, "LSTM": 5, "GRU": 4}

"""Tensors of hidden_size columns that each cell keeps for its gradient, besides its output."""

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}

_PLAIN = {"RNN_TANH": ACTIVATIONS["tanh"], "RNN_RELU": ACTIVATIONS["relu"]}


@dataclass(frozen=True)
class Layer:
    """Weights of a direction of a layer. mask: [T, B, 1], whether a row is within its sequence, or None."""

    mode: str
    w_ih: Any
    w_hh: Any
    b_ih: Any
    b_hh: Any
    reverse: bool
    mask: Any
    xp: Any

    def _times(self, steps: int) -> range:
        return range(steps - 1, -1, -1) if self.reverse else range(steps)

    def forward(self, x: Array, h: Array, c: Array | None, kept: Array | None) -> tuple[Array, Array, Array | None]:
        """x [T, B, I], initial h and c [B, H] -> (out [T, B, H], last h, last c).

        kept: buffer [T, B, (SAVED + 1) H] to fill for `backward`, or None.
        """
        xp, size = self.xp, h.shape[1]
        pre = x @ self.w_ih.T + self.b_ih
        w_hh = self.w_hh.T
        out = xp.empty((*x.shape[:2], size), x.dtype)
        for t in self._times(len(x)):
            saved: tuple[Any, ...] = ()
            recurrent = h @ w_hh + self.b_hh
            if self.mode == "LSTM":
                g = pre[t] + recurrent
                ACTIVATIONS["sigmoid"].apply(g[:, : 2 * size], xp)
                ACTIVATIONS["tanh"].apply(g[:, 2 * size : 3 * size], xp)
                ACTIVATIONS["sigmoid"].apply(g[:, 3 * size :], xp)
                i, f, candidate, o = (g[:, k * size : (k + 1) * size] for k in range(4))
                new_c = f * c + i * candidate
                new = o * xp.tanh(new_c)
                saved = (g, new_c)
                c = new_c if self.mask is None else xp.where(self.mask[t], new_c, c)
            elif self.mode == "GRU":
                rz = pre[t, :, : 2 * size] + recurrent[:, : 2 * size]
                ACTIVATIONS["sigmoid"].apply(rz, xp)
                r, z, q = rz[:, :size], rz[:, size:], recurrent[:, 2 * size :]
                n = xp.tanh(pre[t, :, 2 * size :] + r * q)
                new = n + z * (h - n)
                saved = (rz, n, q)
            else:
                new = pre[t] + recurrent
                _PLAIN[self.mode].apply(new, xp)
            out[t] = new if self.mask is None else new * self.mask[t]
            h = new if self.mask is None else xp.where(self.mask[t], new, h)
            if kept is not None:
                kept[t] = xp.concatenate([*saved, out[t]], axis=1)
        return out, h, c

    def backward(
        self, x: Array, h0: Array, c0: Array | None, kept: Array, d_out: Array, dh: Array, dc: Array | None
    ) -> _Grads:
        """Gradients from those of out [T, B, H] and of the last states [B, H]."""
        xp, size = self.xp, h0.shape[1]
        h_prev = self._before(kept[:, :, -size:], h0)
        c_prev: RequiredArray = self._before(kept[:, :, 4 * size : 5 * size], c0) if c0 is not None else None
        d_x = xp.empty((*x.shape[:2], _GATES[self.mode] * size), x.dtype)
        d_h = xp.empty_like(d_x) if self.mode == "GRU" else d_x
        for t in reversed(self._times(len(x))):
            stay, stay_c = 0, 0
            dh_t = dh + d_out[t]
            if self.mask is not None:
                inside = self.mask[t]
                dh_t, stay = xp.where(inside, dh_t, 0), xp.where(inside, 0, dh)
                if dc is not None:
                    dc, stay_c = xp.where(inside, dc, 0), xp.where(inside, 0, dc)
            s = [kept[t, :, k * size : (k + 1) * size] for k in range(kept.shape[2] // size)]
            d = d_x[t]
            if self.mode == "LSTM":
                i, f, candidate, o, c, _ = s
                tanh_c = xp.tanh(c)
                dc = dc + dh_t * o * (1 - tanh_c * tanh_c)
                d[:, :size] = dc * candidate * i * (1 - i)
                d[:, size : 2 * size] = dc * c_prev[t] * f * (1 - f)
                d[:, 2 * size : 3 * size] = dc * i * (1 - candidate * candidate)
                d[:, 3 * size :] = dh_t * tanh_c * o * (1 - o)
                dc = dc * f + stay_c
                through = 0
            elif self.mode == "GRU":
                r, z, n, q, _ = s
                dn = dh_t * (1 - z) * (1 - n * n)
                d[:, :size] = dn * q * r * (1 - r)
                d[:, size : 2 * size] = dh_t * (h_prev[t] - n) * z * (1 - z)
                d[:, 2 * size :] = dn
                d_h[t, :, : 2 * size] = d[:, : 2 * size]
                d_h[t, :, 2 * size :] = dn * r
                through = dh_t * z
            else:
                d[...] = dh_t * _PLAIN[self.mode].slope(s[-1], xp)
                through = 0
            dh = d_h[t] @ self.w_hh + through + stay
        flat_x, flat_h = d_x.reshape(-1, d_x.shape[2]), d_h.reshape(-1, d_x.shape[2])
        return _Grads(
            d_x @ self.w_ih,
            flat_x.T @ x.reshape(-1, x.shape[2]),
            flat_h.T @ h_prev.reshape(-1, size),
            flat_x.sum(axis=0),
            flat_h.sum(axis=0),
            dh,
            dc,
        )

    def _before(self, states: Array, first: Array) -> Array:
        """The state that each step began with; rows past the end of a sequence are of no account."""
        before = self.xp.empty_like(states)
        if not len(states):
            return before
        if not self.reverse:
            before[0], before[1:] = first, states[:-1]
            return before
        before[-1] = first
        later = states[1:]
        before[:-1] = later if self.mask is None else self.xp.where(self.mask[1:], later, first)
        return before


@dataclass(frozen=True)
class _Grads:
    """Gradients of a direction of a layer."""

    x: Any
    w_ih: Any
    w_hh: Any
    b_ih: Any
    b_hh: Any
    h0: Any
    c0: Any


def row_mask(lengths: Array, steps: int, xp: ArrayModule) -> Array | None:
    """[T, B, 1]: whether step t lies within sequence b; None when all sequences are full."""
    lengths = np.asarray(lengths.get() if hasattr(lengths, "get") else lengths).reshape(-1)
    if (lengths >= steps).all():
        return None
    return xp.asarray((np.arange(steps)[:, None] < lengths)[:, :, None])


# gru_unit -------------------------------------------------------------------------------------------------------------
_NAMES = tuple(ACTIVATIONS)


@kernel("gru_unit", place=("cpu", "cuda"), dtypes=FLOATS)
def gru_unit(
    Input: Array,
    HiddenPrev: Array,
    Weight: Array,
    Bias: Array | None = None,
    *,
    activation: int,
    gate_activation: int,
    origin_mode: bool,
    xp: ArrayModule,
) -> tuple[Array, ...]:
    """The step that gru repeats."""
    cell = GruCell.of(Weight, _NAMES[gate_activation], _NAMES[activation], origin_mode, xp)
    gate = Input.copy() if Bias is None else Input + Bias.reshape(-1)
    reset, hidden = xp.empty_like(HiddenPrev), xp.empty_like(HiddenPrev)
    with np.errstate(over="ignore"):
        cell.forward(gate, HiddenPrev, reset, hidden)
    return gate, reset, hidden


@kernel("gru_unit_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def gru_unit_grad(
    HiddenPrev: Array,
    Weight: Array,
    Gate: Array,
    ResetHiddenPrev: Array,
    Hidden_grad: Array,
    *,
    activation: int,
    gate_activation: int,
    origin_mode: bool,
    ctx: KernelContext,
    xp: ArrayModule,
) -> dict[str, Array]:
    """The step back that gru_grad repeats."""
    cell = GruCell.of(Weight, _NAMES[gate_activation], _NAMES[activation], origin_mode, xp)
    d_gates = xp.empty_like(Gate)
    hidden_prev_grad = cell.backward(Gate, HiddenPrev, Hidden_grad, d_gates)
    return {
        "Input@GRAD": d_gates,
        "HiddenPrev@GRAD": hidden_prev_grad,
        "Weight@GRAD": cell.weight_grad(d_gates, HiddenPrev, ResetHiddenPrev),
        "Bias@GRAD": d_gates.sum(axis=0, keepdims=True) if ctx.wants("Bias@GRAD") else None,
    }


# lstm_unit ------------------------------------------------------------------------------------------------------------
@kernel("lstm_unit", place=("cpu", "cuda"), dtypes=FLOATS)
def lstm_unit(X: Array, C_prev: Array, *, forget_bias: float, xp: ArrayModule) -> tuple[Array, Array]:
    """Gates first, then cell and state."""
    i, f, o, j = _gates(X, forget_bias, xp)
    c = C_prev * f + i * j
    return c, xp.tanh(c) * o


@kernel("lstm_unit_grad", place=("cpu", "cuda"), dtypes=FLOATS)
def lstm_unit_grad(
    X: Array, C_prev: Array, C: Array, C_grad: Array, H_grad: Array, *, forget_bias: float, xp: ArrayModule
) -> tuple[Array, Array]:
    """The gates are computed again."""
    i, f, o, j = _gates(X, forget_bias, xp)
    t = xp.tanh(C)
    dc = C_grad + H_grad * o * (1 - t * t)
    parts = [dc * j * i * (1 - i), dc * C_prev * f * (1 - f), H_grad * t * o * (1 - o), dc * i * (1 - j * j)]
    return xp.concatenate(parts, axis=1), dc * f


def _gates(X: Array, forget_bias: float, xp: ArrayModule) -> Iterator[Any]:
    """sigmoid(i), sigmoid(f + forget_bias), sigmoid(o), tanh(j)."""
    size = X.shape[1] // 4
    g = X.copy()
    g[:, size : 2 * size] += X.dtype.type(forget_bias)
    with np.errstate(over="ignore"):
        ACTIVATIONS["sigmoid"].apply(g[:, : 3 * size], xp)
    ACTIVATIONS["tanh"].apply(g[:, 3 * size :], xp)
    return (g[:, k * size : (k + 1) * size] for k in range(4))
