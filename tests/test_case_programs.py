"""Recorded programs that belong to no single op: training steps, cells of recurrent layers, learning rate schedules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack.tensor import Scope
from oprack.testing import FileCase, load_cases
from oprack.testing.runner import check_case, missing_ops

CASES = Path(__file__).parent / "data" / "cases"
FILES = sorted(f for f in CASES.rglob("_*.npz"))
EPSILON = "legacy._train_step.0025"  # a gradient of 1e-6, where it shows how adam uses its epsilon


@pytest.mark.parametrize("file", FILES, ids=[f"{f.parent.name}-{f.stem}" for f in FILES])
def test_programs(file: Path) -> None:
    """Numbers agree; of 1.8.5, a mean has shape [1] there and [] here (docs/differences.md)."""
    ran, failures = 0, []
    for case in load_cases(file):
        if missing_ops(case, "forward", default_manager()) or case.id == EPSILON:
            continue
        ran += 1
        reasons = check_case(case, "forward")
        if case.id.startswith("legacy."):
            reasons = [r for r in reasons if r != "mean_0.tmp_0 has shape [], expected [1]"]
        failures += [f"{case.id}: {r}" for r in reasons]
    assert ran and not failures, "\n".join(failures)


def _case(file: str, case_id: str) -> FileCase:
    return next(c for c in load_cases(CASES / file) if c.id == case_id)


def test_adam_scales_epsilon_as_2_6_does() -> None:
    """The first step from moments of 0: 1.8.5 adds epsilon to |g| sqrt(1 - beta2), 2.6.2 epsilon times that root."""
    case = _case("legacy_1_8_5/_train_step.npz", EPSILON)
    name, feed, scope = "lstmp_0.b_0", dict(case.feeds), Scope()
    before = np.array(feed[name].array, np.float64)
    rate = float(feed["learning_rate_0"].array[0])
    for n in case.persistable:
        scope.var(n).set(feed.pop(n))
    updated, gradient = Executor().run(case.program(), feed, [name, f"{name}@GRAD"], scope)
    recorded = next(e.value.array for e in case.expected("forward") if e.name == name)
    g, root = gradient.astype(np.float64), np.sqrt(1 - 0.999)
    np.testing.assert_allclose(updated, before - rate * g / (np.abs(g) + 1e-8), atol=1e-5)
    np.testing.assert_allclose(recorded, before - rate * g / (np.abs(g) + 1e-8 / root), atol=1e-4)
    assert np.abs(recorded - updated).max() > 0.02
