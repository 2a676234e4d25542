"""SimpleRNN, LSTM and GRU: stacks of recurrent layers over padded batches or sequences, by op rnn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack import initializer
from oprack.errors import InvalidArgumentError
from oprack.nn import Module

if TYPE_CHECKING:
    from oprack.functional.tensor import Tensor
    from oprack.layers import ParamAttrLike


class _Recurrent(Module):
    """input_size: columns of x. direction: "forward" or "bidirect". dropout: between layers, while training.

    time_major: x is [time, batch, input_size] instead of [batch, time, input_size]. Parameters weight_ih_l0,
    weight_hh_l0, bias_ih_l0, bias_hh_l0 and so on, with _reverse for the second direction, in cuDNN's order of gates.
    """

    mode = ""
    gates = 1
    states = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_attr: ParamAttrLike = None,
        bias_attr: ParamAttrLike = None,
    ) -> None:
        super().__init__()
        if direction not in ("forward", "bidirect"):
            raise InvalidArgumentError(
                f"{type(self).__name__}: direction is {direction!r}; expected forward or bidirect"
            )
        self.time_major, self.dropout = time_major, dropout
        self.directions = 2 if direction == "bidirect" else 1
        self.attrs: dict[str, Any] = {
            "mode": self.mode,
            "input_size": input_size,
            "hidden_size": hidden_size,
            "num_layers": num_layers,
            "is_bidirec": direction == "bidirect",
        }
        limit = 1 / math.sqrt(hidden_size)
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            columns = input_size if layer == 0 else hidden_size * self.directions
            for suffix in self._suffixes(layer):
                for name, shape in (("ih", [rows, columns]), ("hh", [rows, hidden_size])):
                    weight = self.create_parameter(
                        shape, weight_attr, default_initializer=initializer.Uniform(-limit, limit)
                    )
                    bias = self.create_parameter(
                        [rows], bias_attr, default_initializer=initializer.Uniform(-limit, limit)
                    )
                    setattr(self, f"weight_{name}_{suffix}", weight)
                    setattr(self, f"bias_{name}_{suffix}", bias)

    def _suffixes(self, layer: int) -> list[str]:
        return [f"l{layer}", f"l{layer}_reverse"][: self.directions]

    def forward(
        self, x: Tensor, state: Tensor | Sequence[Tensor] | None = None, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor | tuple[Tensor, ...]]:
        """(outputs, final states): outputs like x with hidden_size columns per direction.

        x may have sequences in place of a batch and a time dim: rows [N, input_size] with LoD, whatever time_major
        says; the outputs have its LoD.

        state: initial ones, [layers times directions, batch, hidden_size], for LSTM a pair; default zeros. lengths:
        int32 [batch]; the rows past the end of a sequence count for nothing.
        """
        if x.lod_level:
            return self._sequences(x, state, lengths)
        if self.time_major:
            return self._time_major(x, state, lengths)
        out, last = self._time_major(F.transpose2(x, axis=[1, 0, 2]), state, lengths)
        return F.transpose2(out, axis=[1, 0, 2]), last

    def _sequences(
        self, x: Tensor, state: Tensor | Sequence[Tensor] | None, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor | tuple[Tensor, ...]]:
        if lengths is not None or x.ndim != 2:
            raise InvalidArgumentError(
                f"{type(self).__name__}: x has LoD and shape {list(x.shape)}"
                + ("" if lengths is None else ", and there are lengths")
                + "; expected rows [N, input_size] whose LoD says how long the sequences are, or a batch "
                "without LoD, with lengths"
            )
        padded, counted = F.sequence_pad(x, F.fill_constant(shape=[1], dtype=x.dtype, value=0.0))
        out, last = self._time_major(F.transpose2(padded, axis=[1, 0, 2]), state, counted.astype("int32"))
        rows = F.sequence_unpad(F.transpose2(out, axis=[1, 0, 2]), counted)
        return (F.lod_reset(rows, x) if x.lod_level > 1 else rows), last

    def _time_major(
        self, x: Tensor, state: Tensor | Sequence[Tensor] | None, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor | tuple[Tensor, ...]]:
        """As forward, of [time, batch, columns]."""
        layers, hidden = self.attrs["num_layers"], self.attrs["hidden_size"]
        if state is None:
            zeros = F.fill_constant_batch_size_like(
                x,
                shape=[layers * self.directions, -1, hidden],
                dtype=x.dtype,
                value=0.0,
                input_dim_idx=1,
                output_dim_idx=1,
            )
            state = [zeros] * self.states
        given = list(state) if isinstance(state, list | tuple) else [state]
        suffixes = [s for layer in range(layers) for s in self._suffixes(layer)]
        weights = [getattr(self, f"weight_{n}_{s}") for s in suffixes for n in ("ih", "hh")]
        weights += [getattr(self, f"bias_{n}_{s}") for s in suffixes for n in ("ih", "hh")]
        found = F.rnn(
            x,
            given,
            weights,
            lengths,
            dropout_prob=self.dropout,
            is_test=not self.training,
            num_outputs={"DropoutState": 1, "State": self.states},
            **self.attrs,
        )
        return found.out, tuple(found.state) if self.states > 1 else found.state[0]


class SimpleRNN(_Recurrent):
    r"""Stack of simple recurrent layers, $$h_t = \tanh(W_{ih} x_t + b_{ih} + W_{hh} h_{t-1} + b_{hh})$$: op rnn.

    Args:
        input_size: Size of the last dim of the input.
        hidden_size: Size of the state, for each direction.
        num_layers: Number of layers, one on top of the other.
        direction: "forward", or "bidirect" for a second pass from the end, whose results are joined to the first's.
        time_major: Whether inputs are [time, batch, input_size] instead of [batch, time, input_size].
        dropout: Probability of dropout between layers in training.
        weight_attr: Attributes of the parameters weight_ih_l0, weight_hh_l0 and so on.
        bias_attr: Attributes of the parameters bias_ih_l0, bias_hh_l0 and so on.

    Raises:
        InvalidArgumentError: direction is neither of the two.
    """

    mode = "RNN_TANH"


class LSTM(_Recurrent):
    """Stack of layers of long short-term memory, whose state is the pair (h, c): op rnn.

    Gates lie in cuDNN's order: i, f, g, o.

    Args:
        input_size: Size of the last dim of the input.
        hidden_size: Size of the state, for each direction.
        num_layers: Number of layers, one on top of the other.
        direction: "forward", or "bidirect" for a second pass from the end, whose results are joined to the first's.
        time_major: Whether inputs are [time, batch, input_size] instead of [batch, time, input_size].
        dropout: Probability of dropout between layers in training.
        weight_attr: Attributes of the parameters weight_ih_l0, weight_hh_l0 and so on.
        bias_attr: Attributes of the parameters bias_ih_l0, bias_hh_l0 and so on.

    Raises:
        InvalidArgumentError: direction is neither of the two.
    """

    mode = "LSTM"
    gates = 4
    states = 2


class GRU(_Recurrent):
    """Stack of layers of gated recurrent units, as cuDNN defines them: op rnn.

    Gates lie in cuDNN's order: r, z, n.

    Args:
        input_size: Size of the last dim of the input.
        hidden_size: Size of the state, for each direction.
        num_layers: Number of layers, one on top of the other.
        direction: "forward", or "bidirect" for a second pass from the end, whose results are joined to the first's.
        time_major: Whether inputs are [time, batch, input_size] instead of [batch, time, input_size].
        dropout: Probability of dropout between layers in training.
        weight_attr: Attributes of the parameters weight_ih_l0, weight_hh_l0 and so on.
        bias_attr: Attributes of the parameters bias_ih_l0, bias_hh_l0 and so on.

    Raises:
        InvalidArgumentError: direction is neither of the two.
    """

    mode = "GRU"
    gates = 3
