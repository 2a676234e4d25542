"""Conformance cases at place cuda without a GPU, for the tests of any pack."""

from __future__ import annotations

from oprack.errors import OprackError
from oprack.runtime import Executor
from oprack.testing.cases import FileCase, Stage
from oprack.testing.runner import differences, run_case

from oprack_cuda.testing.context import strict_executor


def check_case(case: FileCase, stage: Stage, *, prepared: bool = True) -> list[str]:
    """What differs from a case's values at place cuda, over strict arrays; [] where place cpu fails as well.

    On the reference path and, with `prepared`, through generated code.
    """
    found = _differences(case, stage, strict_executor(prepared=False))
    if not found and prepared:
        found = _differences(case, stage, strict_executor(), rounds=2)  # the second run is generated code
    return found if found and not _differences(case, stage, Executor(prepared=False)) else []


def _differences(case: FileCase, stage: Stage, executor: Executor, rounds: int = 1) -> list[str]:
    try:
        for _ in range(rounds):
            got = run_case(case, stage, executor)
    except OprackError as error:
        return [f"{type(error).__name__}: {error}"]
    return differences(case, stage, got)
