"""Runs an example with a predictor, or with the predictor and its clone concurrently, each run several times."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from oprack.inference import Predictor
from oprack.tensor import LoDTensor
from oprack.testing.fuzz.example import Example
from oprack.testing.fuzz.outcome import Outcome, attempt

# The first run of new shapes records a plan, and in the second the library binds its kernels; only the third is steady.
REPEATED = 3


def run_of(predictor: Predictor, example: Example, run: int) -> Callable[[], dict[str, Any]]:
    """A function that performs run number `run` and returns the outputs."""
    names = predictor.get_input_names()

    def call() -> dict[str, Any]:
        feed = example.feed(run)
        predictor.run([feed[n] for n in names])
        outputs = {n: predictor.get_output_handle(n) for n in predictor.get_output_names()}
        return {n: LoDTensor(h.copy_to_cpu(), h.lod(), check=False) for n, h in outputs.items()}

    return call


def run_predictor(predictor: Predictor, example: Example) -> list[Outcome]:
    """Perform all runs, one after the other."""
    return [attempt(run_of(predictor, example, run)) for run in range(len(example.runs))]


def run_clones(predictor: Predictor, example: Example) -> list[Outcome]:
    """Perform all runs with the predictor and a clone of it concurrently.

    Returns:
        For each run, the outcome of its last repetition, taken from the predictor and the clone in turns; a failure of
        any repetition takes precedence.
    """
    predictors = [predictor, predictor.clone()]
    outcomes_by_predictor: list[list[list[Outcome]]] = [[], []]

    def work(k: int) -> None:
        for run in range(len(example.runs)):
            outcomes_by_predictor[k].append([attempt(run_of(predictors[k], example, run)) for _ in range(REPEATED)])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(predictors))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [_chosen(run, [outcomes[run] for outcomes in outcomes_by_predictor]) for run in range(len(example.runs))]


def _chosen(run: int, outcomes: list[list[Outcome]]) -> Outcome:
    last = outcomes[run % len(outcomes)][-1]
    all_outcomes = [o for repeated in outcomes for o in repeated]
    # Whether a run fails must not depend on the repetition or the predictor.
    return next((o for o in all_outcomes if o.ok != last.ok and not o.ok), last)
