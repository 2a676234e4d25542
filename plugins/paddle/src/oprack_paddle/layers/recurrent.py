"""paddle.nn: cells of users run over sequences, and beam search."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import oprack
from oprack import functional as F
from oprack import nn
from oprack.errors import UnimplementedError

from oprack_paddle.adapter import Adapted


class RNNCellBase(nn.Module):
    """A cell, whose states begin with zeros."""

    def get_initial_states(
        self, batch_ref: Any, shape: Any = None, dtype: Any = None, init_value: float = 0.0, batch_dim_idx: int = 0
    ) -> Any:
        """States for the examples of a batch."""
        batch = (batch_ref[0] if isinstance(batch_ref, list | tuple) else batch_ref).shape[batch_dim_idx]
        shape = self.state_shape if shape is None else shape
        nested = isinstance(shape, list | tuple) and shape and isinstance(shape[0], list | tuple)

        def filled(one: Any) -> Any:
            sizes = [one] if isinstance(one, int) else [s for s in one if s != -1]
            return oprack.full([batch, *sizes], init_value, dtype=dtype or "float32")

        return tuple(filled(s) for s in shape) if nested else filled(shape)


def _one(layer: str, what: str, first: Any, second: Any) -> Any:
    """The attributes of both kinds of parameters, which share them here."""
    if first is not second and first is not None and second is not None:
        raise UnimplementedError(
            f"{layer}: {what}_ih_attr and {what}_hh_attr differ; oprack has one for both, so give the same to both"
        )
    return second if first is None else first


def _recurrent(name: str, base: Any, has_activation: bool) -> type:
    """LSTM, GRU or SimpleRNN with Paddle's parameters."""

    class Layer(base, metaclass=Adapted):
        _adapts = base

        def __init__(
            self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward",
            time_major: bool = False, dropout: float = 0.0, *given: Any, **named: Any,
        ) -> None:  # fmt: skip
            names = ["weight_ih_attr", "weight_hh_attr", "bias_ih_attr", "bias_hh_attr", "name"]
            names = ["activation", *names] if has_activation else names
            settings = {**dict(zip(names, given, strict=False)), **named}
            if unknown := settings.keys() - set(names):
                raise TypeError(f"{name}: got {', '.join(sorted(unknown))}; expected {', '.join(names)}")
            activation = settings.get("activation", "tanh")
            if activation not in ("tanh", "relu"):
                raise ValueError(f"{name}: activation is {activation!r}; expected 'tanh' or 'relu'")
            direction = "bidirect" if direction == "bidirectional" else direction
            weight = _one(name, "weight", settings.get("weight_ih_attr"), settings.get("weight_hh_attr"))
            bias = _one(name, "bias", settings.get("bias_ih_attr"), settings.get("bias_hh_attr"))
            base.__init__(self, input_size, hidden_size, num_layers, direction, time_major, dropout, weight, bias)
            if activation == "relu":
                self.attrs["mode"] = "RNN_RELU"

    Layer.__name__ = Layer.__qualname__ = name
    Layer.__doc__ = base.__doc__
    return Layer


LSTM = _recurrent("LSTM", nn.LSTM, False)
GRU = _recurrent("GRU", nn.GRU, False)
SimpleRNN = _recurrent("SimpleRNN", nn.SimpleRNN, True)


class SimpleRNNCell(nn.SimpleRNNCell, metaclass=Adapted):
    """One step of a simple recurrent layer, by tanh or relu."""

    _adapts = nn.SimpleRNNCell

    def __init__(
        self, input_size: int, hidden_size: int, activation: str = "tanh", weight_ih_attr: Any = None,
        weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None, name: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        if activation not in ("tanh", "relu"):
            raise ValueError(f"SimpleRNNCell: activation is {activation!r}; expected 'tanh' or 'relu'")
        self._activation = F.tanh if activation == "tanh" else F.relu

    def forward(self, inputs: Any, states: Any = None) -> Any:
        """The output and the state, which are the same."""
        x, h = self._gates(inputs, self.zeros(inputs) if states is None else states)
        new = self._activation(x + h)
        return new, new


def _mapped(function: Any, *values: Any) -> Any:
    if isinstance(values[0], list | tuple):
        return type(values[0])(_mapped(function, *v) for v in zip(*values, strict=True))
    return function(*values)


class RNN(nn.Module):
    """A cell, run over the steps of sequences."""

    def __init__(self, cell: Any, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        self.cell, self.is_reverse, self.time_major = cell, is_reverse, time_major

    def forward(self, inputs: Any, initial_states: Any = None, sequence_length: Any = None, **kwargs: Any) -> Any:
        """The outputs of all steps, and the last states; steps behind the end of a sequence change nothing."""
        axis = 0 if self.time_major else 1
        steps = inputs.shape[axis]
        if initial_states is None:
            initial_states = RNNCellBase.get_initial_states(
                self.cell, inputs, self.cell.state_shape, inputs.dtype, 0.0, 1 - axis
            )
        mask = None if sequence_length is None else np.arange(steps) < np.asarray(sequence_length).reshape(-1, 1)
        states, outputs = initial_states, [None] * steps
        for t in reversed(range(steps)) if self.is_reverse else range(steps):
            step = inputs[t] if self.time_major else inputs[:, t]
            out, new = self.cell(step, states, **kwargs)
            if mask is not None:
                here = oprack.to_tensor(mask[:, t : t + 1].astype(inputs.dtype))
                new = _mapped(lambda a, b, here=here: a * here + b * (1 - here), new, states)
                out = _mapped(lambda o, here=here: o * here, out)
            states, outputs[t] = new, out
        return oprack.stack(outputs, axis=axis), states


class BiRNN(nn.Module):
    """Two cells, run forwards and backwards."""

    def __init__(self, cell_fw: Any, cell_bw: Any, time_major: bool = False) -> None:
        super().__init__()
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major
        self._forward, self._backward = RNN(cell_fw, False, time_major), RNN(cell_bw, True, time_major)

    def forward(self, inputs: Any, initial_states: Any = None, sequence_length: Any = None, **kwargs: Any) -> Any:
        """The outputs of both, joined, and the last states of both."""
        first, second = initial_states if initial_states is not None else (None, None)
        out_fw, states_fw = self._forward(inputs, first, sequence_length, **kwargs)
        out_bw, states_bw = self._backward(inputs, second, sequence_length, **kwargs)
        return oprack.concat([out_fw, out_bw], axis=-1), (states_fw, states_bw)


BeamOutput = namedtuple("BeamOutput", "scores predicted_ids parent_ids")


class BeamSearchDecoder:
    """The likeliest sequences of a cell, of which it keeps a beam."""

    def __init__(
        self,
        cell: Any,
        start_token: int,
        end_token: int,
        beam_size: int,
        embedding_fn: Any = None,
        output_fn: Any = None,
    ) -> None:
        self.cell, self.start_token, self.end_token, self.beam_size = cell, start_token, end_token, beam_size
        self.embedding_fn, self.output_fn = embedding_fn, output_fn

    @staticmethod
    def tile_beam_merge_with_batch(x: Any, beam_size: int) -> Any:
        """Each example as often as there are sequences in a beam."""
        return oprack.repeat_interleave(x, beam_size, 0)

    def start(self, states: Any) -> tuple[Any, Any, Any, Any]:
        """The first inputs, states, logarithms of probabilities, and which beams have ended."""
        tiled = _mapped(lambda s: self.tile_beam_merge_with_batch(s, self.beam_size), states)
        first = tiled
        while isinstance(first, list | tuple):
            first = first[0]
        batch = first.shape[0] // self.beam_size
        tokens = np.full((batch, self.beam_size), self.start_token, np.int64)
        scores = np.full((batch, self.beam_size), -1e9, np.float32)
        scores[:, 0] = 0.0
        return tokens, tiled, scores, np.zeros((batch, self.beam_size), bool)

    def step(self, tokens: Any, states: Any, scores: Any, ended: Any, **kwargs: Any) -> Any:
        """One more token for each beam: (scores, tokens, parents), states, which beams have ended."""
        batch, beam = tokens.shape
        ids = oprack.to_tensor(tokens.reshape(-1))
        inputs = self.embedding_fn(ids) if self.embedding_fn else ids
        out, states = self.cell(inputs, states, **kwargs)
        logits = self.output_fn(out) if self.output_fn else out
        logs = np.array(F.log_softmax(logits, axis=-1)).reshape(batch, beam, -1)
        vocabulary = logs.shape[-1]
        only_end = np.full(vocabulary, -1e9, logs.dtype)
        only_end[self.end_token] = 0.0
        logs = np.where(ended[..., None], only_end, logs)
        total = (scores[..., None] + logs).reshape(batch, -1)
        order = np.argsort(-total, axis=-1, kind="stable")[:, :beam]
        scores = np.take_along_axis(total, order, -1)
        parents, tokens = order // vocabulary, order % vocabulary
        rows = oprack.to_tensor((np.arange(batch)[:, None] * beam + parents).reshape(-1))
        states = _mapped(lambda s: F.gather(s, rows), states)
        ended = np.take_along_axis(ended, parents, -1) | (tokens == self.end_token)
        return BeamOutput(scores, tokens, parents), states, ended


def dynamic_decode(
    decoder: Any, inits: Any = None, max_step_num: Any = None, output_time_major: bool = False,
    impute_finished: bool = False,
    is_test: bool = False, return_length: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Decode until all beams have ended: the sequences, the last states, and the lengths if asked."""
    tokens, states, scores, ended = decoder.start(inits)
    steps: list[BeamOutput] = []
    lengths = np.zeros(tokens.shape, np.int64)
    while not ended.all() and (max_step_num is None or len(steps) <= max_step_num):
        before = ended
        output, states, ended = decoder.step(tokens, states, scores, ended, **kwargs)
        lengths = np.take_along_axis(lengths + ~before, output.parent_ids, -1)
        scores, tokens = output.scores, output.predicted_ids
        steps.append(output)
    ids = oprack.to_tensor(np.stack([s.predicted_ids for s in steps]).astype(np.int64))
    parents = oprack.to_tensor(np.stack([s.parent_ids for s in steps]).astype(np.int64))
    found = F.gather_tree(ids, parents)
    found = found if output_time_major else found.transpose([1, 0, 2])
    return (found, states, oprack.to_tensor(lengths)) if return_length else (found, states)
