"""Runs of a program on inputs like those that it will see: what its layers read, and how well they do on integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from oprack import Executor, LoDTensor, Program, Scope
from oprack.tensor import numpy_dtype

from oprack_quantization.post_training.integers import along, restored, weight_scales
from oprack_quantization.post_training.layers import CONVOLUTIONS, Layer
from oprack_quantization.post_training.report import Noise
from oprack_quantization.post_training.scales import Histogram

Feed = Mapping[str, Any]
Round = Callable[[np.ndarray], np.ndarray]
Rounding = tuple[Round, Round]
"""What rounds the input of a layer, and what rounds its weight."""
Track = Callable[[Sequence[Any], str], Iterable[Any]]
# Variables of one run, so that not all of a net's features are in memory at once.
_AT_ONCE = 16


def untracked(items: Sequence[Any], what: str) -> Iterable[Any]:
    """The items, without a progress bar."""
    return items


class Calibration:
    """Runs one program on some inputs.

    Args:
        program: The program.
        scope: Its parameters.
        feeds: The inputs, each a mapping of names to arrays or LoDTensors.
        track: Is given what takes long to go through, and a word for it, and gives the same.
    """

    def __init__(self, program: Program, scope: Scope, feeds: Sequence[Feed], track: Track = untracked) -> None:
        self._program, self._scope, self._feeds, self.track = program, scope, feeds, track
        self._executor = Executor()

    def values(self, names: Sequence[str], feed: Feed) -> Iterator[tuple[str, np.ndarray]]:
        """Variables of a run, some at a time. The program runs as often as it has to."""
        for some in _in_parts(names):
            found = self._executor.run(self._program, feed, some, self._scope, return_numpy=False)
            yield from ((n, v.array) for n, v in zip(some, found, strict=True) if isinstance(v, LoDTensor))

    def histograms(self, names: Sequence[str]) -> dict[str, Histogram]:
        """What variables hold in all runs; those of pictures of one pixel are left out, as their sums are short."""
        seen: dict[str, Histogram] = {}
        for feed in self.track(self._feeds, "measuring"):
            for name, array in self.values(names, feed):
                if array.dtype == np.float32 and array.size and not (array.ndim == 4 and array.shape[2:] == (1, 1)):
                    seen.setdefault(name, Histogram()).add(array)
        return seen

    def noise(self, layers: Mapping[Layer, Rounding], most: int) -> dict[Layer, Noise]:
        """Of each layer with its rounding: its result on the floats that it reads, and the error on rounded factors.

        Args:
            layers: Layers, each with what rounds its input and its weight.
            most: How many inputs to take.

        Returns:
            By layer.
        """
        found = {layer: Noise() for layer in layers}
        alone = {layer: _Alone(layer, *rounding) for layer, rounding in layers.items()}
        for feed in self.track(self._feeds[:most], "layer by layer"):
            for some in _in_parts(list(layers), _AT_ONCE // 2):
                names = list(dict.fromkeys(n for layer in some for n in (layer.x.name, layer.y.name)))
                values = dict(self.values(names, feed))
                for layer in some:
                    x, y = values.get(layer.x.name), values.get(layer.y.name)
                    if x is not None and y is not None and x.size:
                        found[layer].add(y, alone[layer].run(self._executor, x))
        return found


def _in_parts(names: Sequence[Any], size: int = _AT_ONCE) -> Iterator[list[Any]]:
    for i in range(0, len(names), size):
        yield list(names[i : i + size])


def to_integers(layer: Layer, scale: float, per_channel: bool) -> Rounding:
    """What rounds the factors of a layer to integers. scale: of its input."""
    axis, scales = layer.axis if per_channel else None, np.array([scale], np.float32)

    def weight(w: np.ndarray) -> np.ndarray:
        return restored(w, along(weight_scales(w, axis), w.ndim, axis))

    return lambda x: restored(x, along(scales, x.ndim, None)), weight


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """To the nearest numbers of bfloat16, as float32."""
    return x.astype(numpy_dtype("bfloat16")).astype(np.float32)


class _Alone:
    """One layer in a program of its own, with rounded weights."""

    def __init__(self, layer: Layer, of_input: Round, of_weight: Round) -> None:
        self._round, self._scope, self._program = of_input, Scope(), Program()
        w, block = layer.w, self._program.global_block()
        self._scope.var("w").set(of_weight(w))
        rank = 4 if layer.op.type in CONVOLUTIONS else len(layer.x.shape or (0, 0))
        block.create_var("x", dtype="float32", shape=[-1] * rank)
        block.create_var("w", dtype="float32", shape=w.shape, persistable=True)
        block.create_var("y", dtype="float32")
        desc = layer.op.desc.clone()
        desc.inputs, desc.outputs = {layer.slot: ["x"], layer.weight_slot: ["w"]}, {layer.out: ["y"]}
        block.append_op(desc)

    def run(self, executor: Executor, x: np.ndarray) -> np.ndarray:
        """The result on a rounded x."""
        (y,) = executor.run(self._program, {"x": self._round(x)}, ["y"], self._scope, return_numpy=False)
        return np.asarray(y.array)


def output_noise(
    before: tuple[Program, Scope], after: tuple[Program, Scope], feeds: Iterable[Feed], fetches: Sequence[str]
) -> dict[str, float]:
    """Of each output of one program, how far it is above the other one's difference from it, in decibels."""
    found, executor = {name: Noise() for name in fetches}, Executor()
    for feed in feeds:
        wanted, got = (
            executor.run(program, feed, list(fetches), scope, return_numpy=False) for program, scope in (before, after)
        )
        for name, a, b in zip(fetches, wanted, got, strict=True):
            found[name].add(np.asarray(a.array), np.asarray(b.array))
    return {name: noise.decibels for name, noise in found.items()}
