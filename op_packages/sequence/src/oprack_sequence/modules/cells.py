"""SimpleRNNCell, LSTMCell, GRUCell: one time step of a recurrent layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack import initializer
from oprack.nn import Module
from oprack_nn.functional.common import lod_of

if TYPE_CHECKING:
    from oprack import Tensor
    from oprack.layers import ParamAttrLike


class _Cell(Module):
    """weight_ih [gates * hidden_size, input_size], weight_hh, bias_ih and bias_hh, as the layers of many steps have."""

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        weight_ih_attr: ParamAttrLike = None,
        weight_hh_attr: ParamAttrLike = None,
        bias_ih_attr: ParamAttrLike = None,
        bias_hh_attr: ParamAttrLike = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        limit, rows = 1 / math.sqrt(hidden_size), self.gates * hidden_size
        uniform = initializer.Uniform(-limit, limit)
        self.weight_ih = self.create_parameter([rows, input_size], weight_ih_attr, default_initializer=uniform)
        self.weight_hh = self.create_parameter([rows, hidden_size], weight_hh_attr, default_initializer=uniform)
        for name, attr in (("bias_ih", bias_ih_attr), ("bias_hh", bias_hh_attr)):
            made = None if attr is False else self.create_parameter([rows], attr, default_initializer=uniform)
            setattr(self, name, made)

    def zeros(self, inputs: Tensor) -> Tensor:
        """The state before the first step: [batch, hidden_size]."""
        # The op counts the sequences of what has LoD, and each row has a state
        rows = F.reduce_sum(inputs, dim=[1]) if getattr(inputs, "lod_level", 0) else inputs
        return F.fill_constant_batch_size_like(
            rows, shape=[-1, self.hidden_size], dtype=inputs.dtype, value=0.0, input_dim_idx=0, output_dim_idx=0
        )

    def _linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        y = lod_of(x, F.matmul_v2(x, weight, trans_y=True))
        return y if bias is None else F.elementwise_add(y, bias)

    def _gates(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        return self._linear(inputs, self.weight_ih, self.bias_ih), self._linear(state, self.weight_hh, self.bias_hh)


class SimpleRNNCell(_Cell):
    r"""One step of a simple recurrent layer: $$h' = \tanh(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})$$.

    A call takes inputs [batch, input_size] and the state h [batch, hidden_size], default zeros, and returns (h', h').

    Args:
        input_size: Size of the inputs.
        hidden_size: Size of the state.
        weight_ih_attr: Attributes of the parameter weight_ih [hidden_size, input_size].
        weight_hh_attr: Attributes of the parameter weight_hh [hidden_size, hidden_size].
        bias_ih_attr: Attributes of the parameter bias_ih [hidden_size]; False: none.
        bias_hh_attr: Attributes of the parameter bias_hh [hidden_size]; False: none.
    """

    def forward(self, inputs: Tensor, states: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x, h = self._gates(inputs, self.zeros(inputs) if states is None else states)
        new = F.tanh(x + h)
        return new, new


class LSTMCell(_Cell):
    r"""One step of long short-term memory: $$c' = \sigma(f) c + \sigma(i) \tanh(g), \quad h' = \sigma(o) \tanh(c')$$.

    A call takes inputs [batch, input_size] and the state (h, c), each [batch, hidden_size], default zeros, and returns
    (h', (h', c')). The gates lie in the order i, f, g, o.

    Args:
        input_size: Size of the inputs.
        hidden_size: Size of the state.
        weight_ih_attr: Attributes of the parameter weight_ih [4 * hidden_size, input_size].
        weight_hh_attr: Attributes of the parameter weight_hh [4 * hidden_size, hidden_size].
        bias_ih_attr: Attributes of the parameter bias_ih [4 * hidden_size]; False: none.
        bias_hh_attr: Attributes of the parameter bias_hh [4 * hidden_size]; False: none.
    """

    gates = 4

    def forward(self, inputs: Tensor, states: Any = None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, c = (self.zeros(inputs), self.zeros(inputs)) if states is None else states
        x, y = self._gates(inputs, h)
        i, f, g, o = (x + y).split(4, -1)
        c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
        h = F.sigmoid(o) * F.tanh(c)
        return h, (h, c)


class GRUCell(_Cell):
    r"""One step of a gated recurrent unit: $$h' = z h + (1 - z) \tanh(x_n + r h_n)$$ with gates r and z of x and h.

    A call takes inputs [batch, input_size] and the state h [batch, hidden_size], default zeros, and returns (h', h').
    The gates lie in the order r, z, n.

    Args:
        input_size: Size of the inputs.
        hidden_size: Size of the state.
        weight_ih_attr: Attributes of the parameter weight_ih [3 * hidden_size, input_size].
        weight_hh_attr: Attributes of the parameter weight_hh [3 * hidden_size, hidden_size].
        bias_ih_attr: Attributes of the parameter bias_ih [3 * hidden_size]; False: none.
        bias_hh_attr: Attributes of the parameter bias_hh [3 * hidden_size]; False: none.
    """

    gates = 3

    def forward(self, inputs: Tensor, states: Tensor | None = None) -> tuple[Tensor, Tensor]:
        h = self.zeros(inputs) if states is None else states
        x, y = self._gates(inputs, h)
        (xr, xz, xn), (hr, hz, hn) = x.split(3, -1), y.split(3, -1)
        z = F.sigmoid(xz + hz)
        n = F.tanh(xn + F.sigmoid(xr + hr) * hn)
        new = z * (h - n) + n  # first what has the LoD of the inputs
        return new, new
