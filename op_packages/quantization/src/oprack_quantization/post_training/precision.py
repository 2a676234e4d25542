"""choose_precisions: each layer in the precision that costs little enough, of those that this machine is faster in."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from oprack import Executor, Program, Scope
from oprack.errors import InvalidArgumentError
from oprack.io.inference_model import InferenceModel, freeze_parameters
from oprack.io.parameters import persistable_vars
from oprack.ir import select_passes
from oprack.ir.models import optimize_model

from oprack_quantization.post_training.calibration import Calibration, Track, to_bfloat16, untracked
from oprack_quantization.post_training.layers import OPS, Layer
from oprack_quantization.post_training.quantize import MEASURED, NAMED, check, costliest_first, measure, rewritten
from oprack_quantization.post_training.report import LayerReport, Noise, Quantized

PRECISIONS = ("int8", "bfloat16")
"""From the one that rounds most on."""
_ROUNDS = 7
_SETS = (("int8", "bfloat16"), ("int8",), ("bfloat16",))
_WORTH = 0.98
"""Of float32's time: what takes longer is no gain beside the noise of clocks."""


def choose_precisions(
    program: Program,
    scope: Scope,
    feeds: Sequence[Mapping[str, Any]],
    fetches: Sequence[str],
    *,
    error: float,
    method: str = "mse",
    per_channel: bool = True,
    ops: Collection[str] = OPS,
    skip: Collection[str] = (),
    enlarged: bool = False,
    track: Track = untracked,
) -> Quantized:
    r"""Give each convolution and product with a weight a precision: int8, bfloat16 or float32.

    The limit is on the relative error of each output over all inputs together, $\sqrt{\sum (y - y_0)^2 / \sum y_0^2}$,
    where $y_0$ is what the program gives in float32 and y what it gives here, computed in these precisions by the
    libraries that are installed. A layer gets the least precision in which its own relative error, measured on what it
    reads in float32, stays below a limit for all layers, the largest by which the outputs stay within theirs, found by
    bisection. That is done for int8 with bfloat16, and for either alone; what then takes the least time on the inputs
    is taken, float32 included. Precisions that this machine has no instructions for change nothing, and are not taken.

    What was chosen stands in the program: layers in int8 read quantize_linear and dequantize_linear, and layers in
    bfloat16 have the attribute mkldnn_data_type. So it is the same in every process; it computes in these precisions
    after `Config.enable_mkldnn_int8()` and `Config.enable_mkldnn_bfloat16()`.

    Args:
        program: A program for inference, with or without feed and fetch ops; it is not changed.
        scope: Its parameters; new ones are added.
        feeds: Inputs like those that the model will see, each a mapping of names to arrays or LoDTensors.
        fetches: The outputs that the limit is about.
        error: The limit, above 0.
        method: As for quantize_post_training; so are per_channel, ops, skip, enlarged and track.
        per_channel: Whether each channel of the result has a scale of its own for its weights.
        ops: Op types that may change.
        skip: Layers that stay in float32, by the variable that they write or their weight.
        enlarged: Whether convolutions of enlarged maps may be int8.
        track: Is given what takes long to go through, and a word for it, and gives the same.

    Returns:
        The program, the precision of each layer, the errors of the outputs, and the times that were compared. No layer
        changes where nothing is faster than float32 within the limit.

    Raises:
        InvalidArgumentError: There are no inputs, a name is unknown, or the limit is not above 0.
    """
    check(method, ops, feeds)
    if not error > 0 or not math.isfinite(error):
        raise InvalidArgumentError(f"error is {error!r}; expected a number above 0, such as 0.01")
    calibration = Calibration(program, scope, feeds, track)
    measured = measure(program, scope, fetches, calibration, method, ops, skip, enlarged, per_channel)
    costs = _costs(calibration, measured.layers, measured.reports)
    trials = _Trials(program, scope, feeds, fetches, ops, measured.reports, per_channel)
    plain = trials.take([{}] * len(costs))
    found: dict[str, _Trial] = {}
    for allowed in track(_SETS, "choosing precisions"):
        best = _within(trials, [{p: c for p, c in cost.items() if p in allowed} for cost in costs], error)
        if best is not None and best.precisions not in [t.precisions for t in found.values()]:
            found[" and ".join(allowed)] = best
    compared = {"float32": plain, **found}
    seconds = trials.seconds(compared)
    name = min(seconds, key=lambda n: seconds[n] / (1 if n == "float32" else _WORTH))
    for report, precision in zip(measured.reports, compared[name].precisions, strict=True):
        report.precision = precision
        report.left = "" if precision != "float32" else report.left or "needed for the error, or faster"
    chosen = rewritten(program, scope, fetches, ops, measured.reports, per_channel)
    noise = {n: -20 * math.log10(e) if e else math.inf for n, e in compared[name].errors.items()}
    return Quantized(chosen, costliest_first(measured.reports), noise, measured.others, compared[name].errors, seconds)


def _costs(calibration: Calibration, layers: Sequence[Layer], reports: Sequence[LayerReport]) -> list[dict[str, float]]:
    """The relative error of each layer by itself, by the precisions that it can have."""
    found: list[dict[str, float]] = []
    named = {layer: report.left == NAMED for layer, report in zip(layers, reports, strict=True)}
    # depthwise convolutions have no products of bfloat16
    narrow = [layer for layer in layers if not named[layer] and not (layer.w.ndim == 4 and layer.w.shape[1] == 1)]
    noise = calibration.noise(dict.fromkeys(narrow, (to_bfloat16, to_bfloat16)), MEASURED)
    for layer, report in zip(layers, reports, strict=True):
        cost = {} if report.left else {"int8": _relative(report.decibels)}
        if layer in noise:
            cost["bfloat16"] = _relative(noise[layer].decibels)
        found.append(cost)
    return found


def _relative(decibels: float) -> float:
    """The relative error that decibels stand for; infinite where they were not measured."""
    return math.inf if math.isnan(decibels) else 10 ** (-decibels / 20)


def _within(trials: _Trials, costs: Sequence[Mapping[str, float]], error: float) -> _Trial | None:
    """What rounds most by a limit for all layers with outputs within theirs; None where that is nothing."""
    limits = sorted({c for cost in costs for c in cost.values() if math.isfinite(c)})
    best, low, high = None, 0, len(limits)
    while low < high:
        middle = (low + high) // 2
        trial = trials.take([{p: c for p, c in cost.items() if c <= limits[middle]} for cost in costs])
        if max(trial.errors.values(), default=0.0) <= error:
            best, low = trial, middle + 1
        else:
            high = middle
    return best


class _Trial:
    """The program in some precisions, ready to run.

    Attributes:
        precisions: Of each layer.
        errors: Of each output.
    """

    def __init__(self, program: Program, scope: Scope, precisions: tuple[str, ...]) -> None:
        self._program, self._scope, self._executor = program, scope, Executor()
        self.precisions, self.errors = precisions, dict[str, float]()

    def run(self, feed: Mapping[str, Any], fetches: Sequence[str]) -> list[np.ndarray]:
        """The outputs."""
        found = self._executor.run(self._program, feed, list(fetches), self._scope, return_numpy=False)
        return [np.asarray(v.array) for v in found]


class _Trials:
    """Runs the program in precisions, as libraries compute it.

    Args:
        program: The program.
        scope: Its parameters.
        feeds: The inputs.
        fetches: The outputs.
        ops: Op types of layers.
        reports: Of the layers, in the program's order.
        per_channel: Whether each channel of weights has a scale.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope,
        feeds: Sequence[Mapping[str, Any]],
        fetches: Sequence[str],
        ops: Collection[str],
        reports: Sequence[LayerReport],
        per_channel: bool,
    ) -> None:
        self._program, self._scope, self._feeds, self._fetches = program, scope, feeds, fetches
        self._ops, self._reports, self._per_channel = ops, reports, per_channel
        self._passes = select_passes(precisions=dict.fromkeys(PRECISIONS))
        self._made: dict[tuple[str, ...], _Trial] = {}
        self._plain: list[list[np.ndarray]] = []

    def take(self, allowed: Sequence[Mapping[str, float]]) -> _Trial:
        """The program with each layer in the first of PRECISIONS that it may have; of the first one, no errors."""
        precisions = tuple(next((p for p in PRECISIONS if p in some), "float32") for some in allowed)
        if precisions not in self._made:
            self._made[precisions] = self._trial(precisions)
        return self._made[precisions]

    def _trial(self, precisions: tuple[str, ...]) -> _Trial:
        for report, precision in zip(self._reports, precisions, strict=True):
            report.precision = precision
        kid, scope = self._scope.new_scope(), Scope()
        program = rewritten(self._program, kid, self._fetches, self._ops, self._reports, self._per_channel)
        for var in persistable_vars(program):  # copies, as frozen ones are written to no more
            scope.var(var.name).set(kid.get_var(var.name).get().array.copy())
        self._scope.delete_scope(kid)
        bfloat16 = "bfloat16" in precisions
        passes = [p for p in self._passes if bfloat16 or p.precision != "bfloat16"]
        model, _ = optimize_model(InferenceModel(program, [], list(self._fetches)), scope, Executor(), passes)
        freeze_parameters(scope)
        trial = _Trial(model.program, scope, precisions)
        outputs = [trial.run(feed, self._fetches) for feed in self._feeds]
        if not self._plain:
            self._plain = [[y.copy() for y in some] for some in outputs]
        for i, name in enumerate(self._fetches):
            noise = Noise()
            for want, got in zip(self._plain, outputs, strict=True):
                noise.add(want[i], got[i])
            trial.errors[name] = 0.0 if math.isnan(noise.decibels) else _relative(noise.decibels)
        return trial

    def seconds(self, trials: Mapping[str, _Trial]) -> dict[str, float]:
        """What the inputs take in each trial, by the medians of rounds in which they take turns."""
        times: dict[str, list[float]] = {name: [] for name in trials}
        for i in range(_ROUNDS + 1):
            for name, trial in trials.items():
                begin = time.perf_counter()
                for feed in self._feeds[:MEASURED]:
                    trial.run(feed, self._fetches)
                if i:  # the first one makes plans
                    times[name].append(time.perf_counter() - begin)
        return {name: statistics.median(some) for name, some in times.items()}
