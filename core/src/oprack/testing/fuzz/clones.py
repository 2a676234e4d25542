"""The runs of an example by a predictor; or by it and its clone at the same time, which make each several times."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from oprack.inference import Predictor
from oprack.tensor import LoDTensor
from oprack.testing.fuzz.example import Example
from oprack.testing.fuzz.outcome import Outcome, attempt

# A plan records the first run of some shapes, its library binds kernels in the second, and both are left behind then.
REPEATED = 3


def run_of(predictor: Predictor, example: Example, run: int) -> Callable[[], dict[str, Any]]:
    """A function that makes run number `run` and returns the outputs."""
    names = predictor.get_input_names()

    def go() -> dict[str, Any]:
        feed = example.feed(run)
        predictor.run([feed[n] for n in names])
        outputs = {n: predictor.get_output_handle(n) for n in predictor.get_output_names()}
        return {n: LoDTensor(h.copy_to_cpu(), h.lod(), check=False) for n, h in outputs.items()}

    return go


def run_predictor(predictor: Predictor, example: Example) -> list[Outcome]:
    """Make all runs, one after the other."""
    return [attempt(run_of(predictor, example, run)) for run in range(len(example.runs))]


def run_clones(predictor: Predictor, example: Example) -> list[Outcome]:
    """Make all runs with the predictor and a clone of it at the same time.

    Returns:
        Of each run what the last repetition gave, by the predictor and the clone in turns; or what failed, if anything.
    """
    predictors = [predictor, predictor.clone()]
    found: list[list[list[Outcome]]] = [[], []]

    def work(k: int) -> None:
        for run in range(len(example.runs)):
            found[k].append([attempt(run_of(predictors[k], example, run)) for _ in range(REPEATED)])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(predictors))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [_chosen(run, [outcomes[run] for outcomes in found]) for run in range(len(example.runs))]


def _chosen(run: int, outcomes: list[list[Outcome]]) -> Outcome:
    last = outcomes[run % len(outcomes)][-1]
    every = [o for repeated in outcomes for o in repeated]
    # whether a run is refused may not depend on how often it was made, or by whom
    return next((o for o in every if o.ok != last.ok and not o.ok), last)
