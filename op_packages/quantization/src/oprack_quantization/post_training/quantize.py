"""quantize_post_training: scales are measured, and quantize_linear and dequantize_linear put around the layers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack import Program, Scope
from oprack.errors import InvalidArgumentError
from oprack.ir import Graph, VarNode

from oprack_quantization.post_training.calibration import Calibration, Track, output_noise, to_integers, untracked
from oprack_quantization.post_training.enlarged import of_enlarged_maps
from oprack_quantization.post_training.integers import along, integers, weight_scales
from oprack_quantization.post_training.layers import OPS, Layer, fold_weights, layers_of
from oprack_quantization.post_training.report import LayerReport, Quantized
from oprack_quantization.post_training.scales import METHODS

MEASURED = 4
"""Inputs by which the error of each layer is measured."""
DATA_TYPE = "mkldnn_data_type"
"""Paddle's attribute of ops for what they multiply in."""
NAMED = "it was named"
"""Why a layer stays as it is that the caller left out."""


def quantize_post_training(
    program: Program,
    scope: Scope,
    feeds: Sequence[Mapping[str, Any]],
    fetches: Sequence[str],
    *,
    method: str = "mse",
    per_channel: bool = True,
    least_decibels: float = 10.0,
    ops: Collection[str] = OPS,
    skip: Collection[str] = (),
    enlarged: bool = False,
    track: Track = untracked,
) -> Quantized:
    r"""Quantise the convolutions and products with a weight of a trained program.

    What each of them reads goes through quantize_linear and dequantize_linear with a scale s, so that it is a multiple
    of s / 127; its weight w is kept as int8, $round(127 w / s_w)$, and goes through dequantize_linear. The program runs
    in floats, here and in Paddle 2; `Config.enable_mkldnn_int8()` lets it multiply bytes.

    Args:
        program: A program for inference, with or without feed and fetch ops; it is not changed.
        scope: Its parameters; new ones are added.
        feeds: Inputs like those that the model will see, each a mapping of names to arrays or LoDTensors.
        fetches: The outputs whose error is measured.
        method: How s follows from what a layer reads: "abs_max" (its greatest absolute value), "hist" (cuts one of
            100,000 numbers off), "kl" (least divergence of the distributions) or "mse" (least mean square error).
        per_channel: Whether each channel of the result has a scale of its own for its weights, or a weight one in all.
        least_decibels: Layers whose own result is less than this above the error stay in floats.
        ops: Op types to quantise.
        skip: Layers that stay in floats, by the variable that they write or their weight.
        enlarged: Whether to quantise convolutions of enlarged maps, too, which oneDNN computes faster in floats.
        track: Is given what takes long to go through, and a word for it, and gives the same, perhaps with a progress
            bar: `oprack.cli.output.track`.

    Returns:
        The program, and what it costs.

    Raises:
        InvalidArgumentError: There are no inputs, or a name is unknown.
    """
    check(method, ops, feeds)
    calibration = Calibration(program, scope, feeds, track)
    measured = measure(program, scope, fetches, calibration, method, ops, skip, enlarged, per_channel)
    for report in measured.reports:
        report.left = report.left or ("" if report.decibels >= least_decibels else f"less than {least_decibels:g} dB")
        report.precision = "float32" if report.left else "int8"
    quantized = rewritten(program, scope, fetches, ops, measured.reports, per_channel)
    errors = output_noise((program, scope), (quantized, scope), track(feeds, "comparing"), fetches)
    return Quantized(quantized, costliest_first(measured.reports), errors, measured.others)


@dataclass(frozen=True)
class Measured:
    """What the layers of a program would cost in int8.

    Attributes:
        layers: The layers, in the program's order.
        reports: A report of each; `left` says why it can't be quantised, or may not.
        others: Why other ops are no layers, by what they write.
    """

    layers: list[Layer]
    reports: list[LayerReport]
    others: dict[str, str]


def measure(
    program: Program,
    scope: Scope,
    fetches: Sequence[str],
    calibration: Calibration,
    method: str,
    ops: Collection[str],
    skip: Collection[str],
    enlarged: bool,
    per_channel: bool,
) -> Measured:
    """Scales and costs of all layers; arguments as those of quantize_post_training."""
    graph = Graph(program.desc, scope=scope, keep=fetches)
    fold_weights(graph)
    layers, others = layers_of(graph, ops)
    known = {n for layer in layers for n in (layer.y.name, layer.weight.name)}
    if unknown := sorted(set(skip) - known):
        raise InvalidArgumentError(
            f"skip names {', '.join(map(repr, unknown))}; expected outputs or weights of the program's "
            f"{len(layers)} layers of types {', '.join(sorted(ops))}"
        )
    reports = {layer: LayerReport(layer.op.type, layer.y.name, layer.weight.name) for layer in layers}
    left = {layer: NAMED for layer in layers if {layer.y.name, layer.weight.name} & set(skip)}
    if not enlarged:
        left = {layer: "floats are faster on enlarged maps" for layer in of_enlarged_maps(layers)} | left
    wanted = [layer for layer in layers if layer not in left]
    seen = calibration.histograms(list(dict.fromkeys(layer.x.name for layer in wanted)))
    found = [(name, histogram) for name, histogram in seen.items() if histogram.greatest]
    scales = {name: METHODS[method](histogram) for name, histogram in calibration.track(found, "choosing scales")}
    chosen = {layer: scales[layer.x.name] for layer in wanted if layer.x.name in scales}
    roundings = {layer: to_integers(layer, scale, per_channel) for layer, scale in chosen.items()}
    for layer, noise in calibration.noise(roundings, MEASURED).items():
        reports[layer].scale, reports[layer].decibels = chosen[layer], noise.decibels
    for layer, report in reports.items():
        report.left = left.get(layer) or ("" if layer in chosen else "its input is one pixel, all zeros, or no float32")
    return Measured(layers, list(reports.values()), others)


def rewritten(
    program: Program,
    scope: Scope,
    fetches: Sequence[str],
    ops: Collection[str],
    reports: Sequence[LayerReport],
    per_channel: bool,
) -> Program:
    """The program with its layers in the precisions of their reports, which are in the program's order."""
    graph = Graph(program.desc, scope=scope, keep=fetches)
    fold_weights(graph)
    rewriting = _Rewriting(graph, per_channel)
    for layer, report in zip(layers_of(graph, ops)[0], reports, strict=True):
        if report.precision == "int8":
            rewriting.quantize(layer, report.scale)
        if report.precision == "bfloat16":
            layer.op.desc.set_attr(DATA_TYPE, "bfloat16")
    return Program(graph.to_program())


def costliest_first(reports: Iterable[LayerReport]) -> list[LayerReport]:
    """Reports by what their layers cost in int8."""
    return sorted(reports, key=lambda r: (math.isnan(r.decibels), r.decibels))


def check(method: str, ops: Collection[str], feeds: Sequence[Any]) -> None:
    if method not in METHODS:
        raise InvalidArgumentError(f"method is {method!r}; expected one of {', '.join(METHODS)}")
    if not feeds:
        raise InvalidArgumentError("there are no feeds; expected inputs like those that the model will see")
    if unknown := sorted(set(ops) - set(OPS)):
        raise InvalidArgumentError(f"ops names {', '.join(map(repr, unknown))}; expected some of {', '.join(OPS)}")


class _Rewriting:
    """Puts ops around layers; layers that read one variable share its rounding, and those of one weight its integers.

    Args:
        graph: The program.
        per_channel: Whether each channel of the weights has a scale of its own.
    """

    def __init__(self, graph: Graph, per_channel: bool) -> None:
        self._graph, self._per_channel = graph, per_channel
        self._rounded: dict[VarNode, VarNode] = {}
        self._weights: dict[tuple[VarNode, int], VarNode] = {}
        self._zeros: dict[int, VarNode] = {}

    def quantize(self, layer: Layer, scale: float) -> None:
        """Let a layer read multiples of scale / 127, and a weight that is kept as integers."""
        x, weight = layer.x, layer.weight
        if x not in self._rounded:
            step = self._graph.new_parameter(np.array([scale], np.float32), f"{x.name}.scale")
            integers_of_x = self._linear("quantize_linear", x, step, -1, layer)
            self._rounded[x] = self._linear("dequantize_linear", integers_of_x, step, -1, layer)
        key = (weight, layer.axis)
        if key not in self._weights:
            self._weights[key] = self._restored_weight(layer)
        self._graph.replace_input(layer.op, x, self._rounded[x])
        self._graph.replace_input(layer.op, weight, self._weights[key])

    def _restored_weight(self, layer: Layer) -> VarNode:
        axis, name = layer.axis if self._per_channel else None, layer.weight.name
        scales = weight_scales(layer.w, axis)
        kept = integers(layer.w, along(scales, layer.w.ndim, axis))
        stored = self._graph.new_parameter(kept, f"{name}.quantized")
        step = self._graph.new_parameter(scales, f"{name}.scale")
        return self._linear("dequantize_linear", stored, step, -1 if axis is None else axis, layer)

    def _linear(self, op_type: str, x: VarNode, scale: VarNode, axis: int, layer: Layer) -> VarNode:
        """Append quantize_linear or dequantize_linear before a layer; returns what it writes."""
        size = (scale.shape or (1,))[0]
        if size not in self._zeros:
            self._zeros[size] = self._graph.new_parameter(np.zeros(size, np.int32), f"zero_point_{size}")
        y = self._graph.new_var(x.name)
        inputs = {"X": [x], "Scale": [scale], "ZeroPoint": [self._zeros[size]]}
        attrs = {"quant_axis": axis, "bit_length": 8, "round_type": 0, "is_test": True, "only_observer": False}
        self._graph.add_op(op_type, inputs, {"Y": [y]}, attrs, before=layer.op)
        return y
