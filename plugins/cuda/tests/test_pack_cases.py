"""Cases that packs bring themselves, at place cuda over strict arrays: outputs as expected, gradients as on CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from oprack.errors import OprackError
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack.testing import OpCase, collect_cases
from oprack.testing.op_case import build, elements, map_values, random_like, to_float64, with_elements
from oprack_cuda.testing import strict_executor

PACKS = sorted(p for p in Path(__file__).parents[3].glob("op_packages/*/tests/cases") if p.is_dir())


def _differences(case: OpCase) -> Iterator[str]:
    yield from case.differences(strict_executor(prepared=False), build(case, case.inputs))
    if not case.grads:
        return
    built = build(case, {slot: map_values(v, to_float64) for slot, v in case.inputs.items()})
    rng = np.random.default_rng(0)
    values = Executor().run(built.program, built.feed, built.outputs, built.scope(), return_numpy=False)
    starts = {
        name: with_elements(v, random_like(elements(v), rng))
        for name, v in zip(built.outputs, values, strict=True)
        if getattr(v, "dtype", "") in ("float64", "complex128")
    }
    wanted, found = (
        built.gradients(executor, starts, case.grads) for executor in (Executor(), strict_executor(prepared=False))
    )
    for name, value in wanted.items():
        if not np.allclose(np.asarray(found[name]), np.asarray(value), rtol=1e-6, atol=1e-8, equal_nan=True):
            yield f"{case.id}: gradient of {name} differs from that of the CPU"


@pytest.mark.parametrize("folder", PACKS, ids=[p.parts[-3] for p in PACKS])
def test_cases_at_place_cuda(folder: Path) -> None:
    manager, found = default_manager(), []
    for case in collect_cases(folder):
        if len(manager.kernel_map(case.op, "cuda")):
            try:
                found += _differences(case)
            except OprackError as error:
                found.append(f"{case.id}: {type(error).__name__}: {error}")
    assert not found, "\n".join(found)
