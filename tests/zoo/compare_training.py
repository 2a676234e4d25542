"""Runs a step of training by oprack and compares loss and gradients: `python compare_training.py NAME FOLDER`.

Once with the gradient ops that Paddle appended, and once with those that oprack appends to the same forward program.
A gradient may differ by the net's tolerance of its value, of its largest element, and of a thousandth of the largest
gradient of all: what is 0 but for rounding, as before a batch norm, has no scale of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import weights
from oprack import Executor, Program, Scope
from oprack.autodiff import append_backward
from registry import ALL


def furthest(found: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray]) -> float:
    """The largest relative difference of the loss or a gradient."""
    floor = 1e-3 * max(float(np.abs(v).max(initial=0)) for v in wanted.values())
    worst = 0.0
    for name, want in wanted.items():
        got = found[name]
        if got.shape != want.shape or not np.isfinite(got).all():
            return float("inf")
        if want.size:
            scale = np.abs(want) + np.abs(want).max() + floor
            worst = max(worst, float((np.abs(got.astype("float64") - want) / scale).max()))
    return worst


def gradients(
    program: Program, folder: Path, feeds: Mapping[str, np.ndarray], names: list[str]
) -> dict[str, np.ndarray]:
    """The variables `names` after one run from the parameters of the recipe."""
    scope = Scope()
    for name, value in weights.values(folder):
        scope.var(name).set(value)
    found = Executor().run(program, dict(feeds), names, scope)
    return dict(zip(names, map(np.asarray, found), strict=True))


def compared(name: str, folder: Path) -> dict[str, float]:
    """How far loss and gradients are from Paddle's, by the gradient ops of Paddle and of oprack."""
    with np.load(folder / "training.npz", allow_pickle=False) as archive:
        wanted = dict(archive)
    feeds = ALL[name].training_feeds()
    loss, *_ = names = list(wanted)
    theirs = Program.parse((folder / "step.pdmodel").read_bytes())
    ours = Program.parse((folder / "forward.pdmodel").read_bytes())
    append_backward(loss, [n.removesuffix("@GRAD") for n in names[1:]], block=ours.desc.blocks[0])
    both = {"theirs": theirs, "ours": ours}
    return {label: furthest(gradients(program, folder, feeds, names), wanted) for label, program in both.items()}


if __name__ == "__main__":
    print(json.dumps(compared(sys.argv[1], Path(sys.argv[2]))))
