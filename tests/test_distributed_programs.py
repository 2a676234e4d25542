"""Programs that Paddle's transpiler and fleet wrote for two trainers, on two ranks: the losses of one trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import Executor, Program, Scope
from oprack.testing.worlds import ThreadWorld

FOLDER = Path(__file__).parent / "data" / "programs_distributed"
STEPS, BATCH = 4, 8
RNG = np.random.default_rng(0)
IMAGES = RNG.standard_normal((STEPS, BATCH, 1, 28, 28)).astype("float32")
LABELS = RNG.integers(0, 10, (STEPS, BATCH, 1))


def program(name: str) -> Program:
    return Program.parse((FOLDER / name).read_bytes())


def losses(name: str, rank: int, rows: slice, start: dict[str, np.ndarray] | None) -> tuple[list[float], Any]:
    """Train a few steps; the first parameters are those that the startup program leaves, or `start`."""
    scope, executor = Scope(), Executor()
    startup = program(f"{name}.{rank}.startup")
    executor.run(startup, scope=scope)
    names = [n for n, v in startup.global_block().vars.items() if v.persistable and (".w_0" in n or ".b_0" in n)]
    if start is not None:
        for n, value in start.items():
            scope.get_var(n).set(value.copy())
    first = {n: np.array(scope.get_var(n).get().array) for n in names if "velocity" not in n}
    main = program(f"{name}.{rank}.main")
    loss = (FOLDER / f"{name}.{rank}.loss").read_text().strip()
    found = []
    for x, y in zip(IMAGES, LABELS, strict=True):
        found.append(executor.run(main, feed={"x": x[rows], "y": y[rows]}, fetch_list=[loss], scope=scope)[0].item())
    return found, first


@pytest.mark.parametrize("name", ["transpiler", "fleet"])
def test_two_ranks_train_as_one(name: str) -> None:
    whole, start = losses("one", 0, slice(None), None)

    def rank(world: Any) -> list[float]:
        half = slice(world.rank * BATCH // 2, (world.rank + 1) * BATCH // 2)
        return losses(name, world.rank, half, start)[0]

    first, second = ThreadWorld(2).run(rank)
    np.testing.assert_allclose((np.array(first) + second) / 2, whole, atol=1e-5)
    assert whole[0] != whole[-1]


def test_the_startup_program_gives_all_ranks_the_parameters_of_the_first() -> None:
    def rank(world: Any) -> Any:
        import oprack

        executor, scope = Executor(), Scope()
        executor.random.load_state({"seed": world.rank, "draws": {}})
        assert oprack.parallel.world() is world
        executor.run(program(f"fleet.{world.rank}.startup"), scope=scope)
        return {n: scope.get_var(n).get().array for n in ("fc_0.w_0", "conv2d_1.w_0")}

    first, second = ThreadWorld(2).run(rank)
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])
