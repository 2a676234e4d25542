"""One direction of one recurrent layer over a padded, time-major batch, forward and back, for each kind of cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack.kernel import Array, ArrayModule

from oprack_sequence.kernels.recurrent._activations import ACTIVATIONS

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
        c_prev = self._before(kept[:, :, 4 * size : 5 * size], c0) if c0 is not None else None
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
