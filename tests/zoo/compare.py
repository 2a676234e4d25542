"""Runs one net by oprack and compares: `python compare.py NAME FOLDER [--pir FOLDER]` prints a line of JSON.

Each predictor runs all cases and then the first again, with passes and without. An array agrees if its shape and dtype
do, integers are equal, and floats are within the net's tolerance of the value and of the largest one.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import weights
from distance import distance
from oprack import Program, Scope, inference
from oprack.io import save_vars
from oprack.tensor import numpy_dtype


def remake(folder: Path) -> Path:
    """Write the parameter file of a net's folder again from its recipe; returns its path."""
    file = folder / "model.pdiparams"
    if not file.exists():
        scope, program = Scope(), Program.parse((folder / "model.pdmodel").read_bytes())
        for name, value in weights.values(folder):
            # Paddle's quantization stores weights as int8 and scales with other dims of 1 than the program declares
            declared = program.global_block().var(name)
            scope.var(name).set(value.astype(numpy_dtype(declared.dtype)).reshape(declared.shape))
        save_vars(folder, program, scope, filename=file.name)
    return file


def outputs_of(model: Path, params: Path, passes: bool, runs: list[Mapping[str, np.ndarray]]) -> list[list[np.ndarray]]:
    """What one predictor gives for one run after the other."""
    config = inference.Config(str(model), str(params))
    config.switch_ir_optim(passes)
    predictor = inference.create_predictor(config)
    found = []
    for feeds in runs:
        for name in predictor.get_input_names():
            predictor.get_input_handle(name).copy_from_cpu(feeds[name])
        predictor.run()
        found.append([predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()])
    return found


def expected(folder: Path, case: tuple[int, int]) -> list[np.ndarray]:
    """Paddle's outputs of a case."""
    with np.load(folder / f"{case[0]}x{case[1]}.npz", allow_pickle=False) as archive:
        return [archive[name] for name in sorted(archive.files)]


def compared(name: str, model: Path, params: Path, wanted: list[list[np.ndarray]]) -> dict[str, Any]:
    """The largest distance of any output in any case, with passes and without."""
    from registry import ALL

    net = ALL[name]
    runs = [net.feeds(*case) for case in net.cases()]
    result: dict[str, Any] = {}
    for label, passes in (("passes", True), ("plain", False)):
        begin = time.perf_counter()
        found = outputs_of(model, params, passes, [*runs, runs[0]])
        worst = 0.0
        for got, want in zip(found, [*wanted, wanted[0]], strict=True):
            worst = max([worst, *(distance(a, b) for a, b in zip(got, want, strict=True))])
        result[label], result[f"{label}_s"] = worst, round(time.perf_counter() - begin, 2)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pir", type=Path, help="what Paddle 3 wrote")
    given = parser.parse_args()
    warnings.simplefilter("ignore", inference.NoEffectWarning)
    from registry import ALL

    wanted = [expected(given.folder, case) for case in ALL[given.name].cases()]
    if given.pir:
        model = given.pir / "model.json"
        theirs = [expected(given.pir, case) for case in ALL[given.name].cases()]
        result = compared(given.name, model, model.with_suffix(".pdiparams"), theirs)
        pairs = [(a, b) for x, y in zip(theirs, wanted, strict=True) for a, b in zip(x, y, strict=True)]
        result["paddle3_itself"] = max(distance(a, b) for a, b in pairs)
    else:
        result = compared(given.name, given.folder / "model.pdmodel", remake(given.folder), wanted)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
