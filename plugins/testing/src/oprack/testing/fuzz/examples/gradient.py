"""Gradients of an example's outputs, appended to its program and compared like other outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from oprack.autodiff import gradients
from oprack.autodiff.path import differentiable
from oprack.desc import BlockDesc
from oprack.errors import OprackError
from oprack.program import Program
from oprack.tensor import LoDTensor
from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.runs.outcome import Outcome
from oprack.testing.fuzz.runs.paths import Paths

_FLOATS = ("float32", "float64")


def with_gradients(example: Example, rng: np.random.Generator, paths: Paths) -> Example:
    """The example with the gradients of its floating outputs, into each of which a random gradient flows.

    Returns the example as it is where there are none to be had.
    """
    program = Program(example.program.desc.clone())
    block = program.global_block()
    forward_ops = len(block.ops)
    inputs, targets = _ends(example, block)
    if not inputs or not targets or example.has_blocks:
        return example
    outcomes = paths.reference(example)
    fed = [_cotangents(outcome, outcomes[0], targets, rng) for outcome in outcomes]
    targets = [n for n in targets if _given(n) in fed[0]]
    wrt = _append_gradients(block, inputs, targets, fed[0], paths) if targets else {}
    if not wrt:
        return example
    wanted = set(map(_given, targets))
    runs = [
        run | {n: v for n, v in flowing.items() if n in wanted} for run, flowing in zip(example.runs, fed, strict=True)
    ]
    fetch = [*example.fetch, *wrt.values()]
    targets_of = {n: _given(n) for n in targets}
    return Example(program, example.params, runs, fetch, example.layouts, wrt, targets_of, forward_ops, example.label)


def _append_gradients(
    block: BlockDesc, inputs: list[str], targets: list[str], fed: Mapping[str, LoDTensor], paths: Paths
) -> dict[str, str]:
    """Append the gradient ops; returns the gradient of each input that has one, none where an op refuses."""
    given = list(map(_given, targets))
    for name in given:
        value = fed[name]
        block.create_var(name, dtype=value.dtype, shape=[-1] * len(value.shape), lod_level=len(value.lod))
    try:
        names = gradients(targets, inputs, given, block=block, manager=paths.manager)
    except OprackError:
        return {}
    return {x: g for x, g in zip(inputs, names, strict=True) if g is not None}


def _given(name: str) -> str:
    """What the gradient that flows into an output is called."""
    return f"{name}@given"


def _ends(example: Example, block: BlockDesc) -> tuple[list[str], list[str]]:
    """(floating inputs, floating outputs that are fetched)."""
    values = {**example.runs[0], **example.params}
    inputs = [n for n, v in values.items() if isinstance(v, LoDTensor) and v.dtype in _FLOATS and block.has_var(n)]
    written = {n for op in block.ops for n in op.output_arg_names()}
    targets = [n for n in example.fetch if n in written and block.has_var(n) and differentiable(block, n)]
    return inputs, targets


def _cotangents(outcome: Outcome, first: Outcome, targets: list[str], rng: np.random.Generator) -> dict[str, Any]:
    """Of outputs of one run; where it is refused, of the shapes of the first one."""
    values = outcome.values if outcome.ok else first.values
    found = {}
    for name in targets:
        value = values.get(name)
        if isinstance(value, LoDTensor) and value.dtype in _FLOATS:
            array = rng.uniform(-1, 1, value.shape).astype(value.dtype)
            found[_given(name)] = LoDTensor(array, value.lod, check=False)
    return found
