"""One time step of a GRU with gates in the order u, r, c, forward and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oprack.kernel import Array, ArrayModule

from oprack_sequence.kernels.recurrent._activations import ACTIVATIONS


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
