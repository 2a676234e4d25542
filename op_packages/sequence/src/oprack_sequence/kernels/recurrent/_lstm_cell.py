"""One time step of an LSTM with gates in the order c', i, f, o and optional peepholes, forward and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oprack.kernel import Array, ArrayModule

from oprack_sequence.kernels.recurrent._activations import ACTIVATIONS


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
    def of(
        cls, Bias: Array, size: int, use_peepholes: bool, *activations: str, xp: ArrayModule, clip: float = 0.0
    ) -> LstmCell:
        """From a Bias [1, 7 D] or [1, 4 D]; activations of gates, candidate and cell."""
        p = Bias.reshape(-1)[4 * size :]
        peepholes = (p[:size], p[size : 2 * size], p[2 * size :]) if use_peepholes else None
        return cls(size, peepholes, *activations, xp=xp, clip=clip)

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
