"""Runs an example with a predictor: once, forwards and back, or with the predictor and its clone concurrently."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from oprack.inference import Predictor
from oprack.tensor import LoDTensor
from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.runs.outcome import Outcome, attempt

RunAll: TypeAlias = Callable[[Predictor, Example], list[Outcome]]
"""Gives the outcomes of all runs in order, once or several times."""

# The first run of new shapes records a plan, and in the second the library binds its kernels; only the third is steady.
REPEATED = 3
Feed: TypeAlias = Mapping[str, Any]


def run_of(predictor: Predictor, example: Example, run: int) -> Callable[[], dict[str, Any]]:
    """A function that performs run number `run` and returns the outputs."""
    names = predictor.get_input_names()

    def call() -> dict[str, Any]:
        feed = example.feed(run)
        predictor.run([feed[n] for n in names])
        return _outputs(predictor)

    return call


def run_predictor(predictor: Predictor, example: Example) -> list[Outcome]:
    """Perform all runs, one after the other."""
    return [attempt(run_of(predictor, example, run)) for run in range(len(example.runs))]


def run_clones(predictor: Predictor, example: Example) -> list[Outcome]:
    """Perform all runs with the predictor and a clone of it concurrently, each run several times before the next."""
    predictors = [predictor, predictor.clone()]
    repeated: list[list[list[Outcome]]] = [[], []]

    def work(k: int) -> None:
        for run in range(len(example.runs)):
            repeated[k].append([attempt(run_of(predictors[k], example, run)) for _ in range(REPEATED)])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(predictors))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [outcomes[i] for of_runs in repeated for i in range(REPEATED) for outcomes in of_runs]


def run_to_and_fro(predictor: Predictor, example: Example) -> list[Outcome]:
    """Perform all runs forwards and back by turns, so that sizes grow, shrink and come back.

    What is fed and taken goes by another way in each turn, and what is fed is overwritten when the predictor has no
    right to it any more; outcomes are compared when all is over, so that one that a later run overwrites is noticed.
    """
    numbers, outcomes = range(len(example.runs)), list[Outcome]()
    for way, order in ((_by_list, 1), (_copied, -1), (_shared, 1), (_copied, -1), (_by_list, 1)):
        turn = {run: attempt(partial(_fed, way, predictor, example, run)) for run in numbers[::order]}
        outcomes += [turn[run] for run in numbers]
    return outcomes


def _fed(way: Callable[[Predictor, Feed], dict[str, Any]], predictor: Predictor, example: Example, run: int) -> Any:
    return way(predictor, _own(example, run))


def _own(example: Example, run: int) -> Feed:
    """What a run is fed, in arrays that nobody else has, but for those that can't be written to."""
    return {n: _unshared(v, example.runs[run][n].array) for n, v in example.feed(run).items()}


def _unshared(value: Any, kept: np.ndarray) -> Any:
    array = _array(value)
    if not array.flags.writeable or not np.may_share_memory(array, kept):
        return value
    return LoDTensor(array.copy(), value.lod, check=False) if isinstance(value, LoDTensor) else array.copy()


def _array(value: Any) -> np.ndarray:
    array: np.ndarray = value.array if isinstance(value, LoDTensor) else value
    return array


def _by_list(predictor: Predictor, feed: Feed) -> dict[str, Any]:
    arrays = predictor.run([feed[n] for n in predictor.get_input_names()])
    assert arrays is not None
    _overwrite(feed)
    lods = {n: h.lod() for n, h in _handles(predictor).items()}
    return {n: LoDTensor(a, lod, check=False) for a, (n, lod) in zip(arrays, lods.items(), strict=True)}


def _copied(predictor: Predictor, feed: Feed) -> dict[str, Any]:
    for name, value in feed.items():
        handle = predictor.get_input_handle(name)
        handle.copy_from_cpu(_array(value))
        handle.set_lod(getattr(value, "lod", []))
    _overwrite(feed)
    predictor.run()
    return _outputs(predictor)


def _shared(predictor: Predictor, feed: Feed) -> dict[str, Any]:
    for name, value in feed.items():
        handle = predictor.get_input_handle(name)
        handle.set_lod([])
        handle.share_external_data(value)
    predictor.run()
    _overwrite(feed)
    return _outputs(predictor)


def _handles(predictor: Predictor) -> dict[str, Any]:
    return {n: predictor.get_output_handle(n) for n in predictor.get_output_names()}


def _outputs(predictor: Predictor) -> dict[str, Any]:
    return {n: LoDTensor(h.copy_to_cpu(), h.lod(), check=False) for n, h in _handles(predictor).items()}


def _overwrite(feed: Feed) -> None:
    for value in feed.values():
        array = _array(value)
        if array.flags.writeable and array.dtype.kind in "fciub":
            array[...] = np.array(np.nan if array.dtype.kind in ("f", "c") else 1, array.dtype)
