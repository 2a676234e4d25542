"""Programs that Paddle's transpiler and fleet wrote for several trainers, on several ranks: the losses of one."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import Executor, Program, Scope, parallel
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


def trained(name: str, rank: int, feeds: dict[str, np.ndarray], start: dict[str, np.ndarray]) -> list[float]:
    """Losses of a program of record_distributed.py from given parameters."""
    scope, executor = Scope(), Executor()
    executor.run(program(f"{name}.{rank}.startup"), scope=scope)
    for n, value in start.items():
        scope.get_var(n).set(value.copy())
    main = program(f"{name}.{rank}.main")
    loss = (FOLDER / f"{name}.{rank}.loss").read_text().strip()
    return [executor.run(main, feed=feeds, fetch_list=[loss], scope=scope)[0].item() for _ in range(STEPS)]


def drawn(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {n: rng.standard_normal(shape).astype("float32") * np.float32(0.5) for n, shape in shapes.items()}


def small_net() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What the programs fused, sharding and one_fused are fed, and their first parameters."""
    rng = np.random.default_rng(2)
    feed = {"x": rng.standard_normal((BATCH, 8)).astype("float32"), "y": rng.integers(0, 4, (BATCH, 1))}
    return feed, drawn({"a.w_0": (8, 16), "a.b_0": (16,), "b.w_0": (16, 16), "b.b_0": (16,), "c.w_0": (16, 4)})


def with_half_of_the_batch(name: str, world: Any) -> list[float]:
    """Losses of one of two ranks."""
    feed, start = small_net()
    kept = program(f"{name}.{world.rank}.startup").global_block().vars
    half = slice(world.rank * BATCH // 2, (world.rank + 1) * BATCH // 2)
    mine = {n: v for n, v in start.items() if n in kept}
    return trained(name, world.rank, {n: v[half] for n, v in feed.items()}, mine)


@pytest.mark.parametrize("name", ["fused", "sharding"])
def test_reduced_together_or_for_the_rank_that_updates(name: str) -> None:
    """Gradients in one buffer; and parameters of which each rank updates some and sends them to the other."""
    whole = trained("one_fused", 0, *small_net())
    first, second = ThreadWorld(2).run(functools.partial(with_half_of_the_batch, name))
    np.testing.assert_allclose((np.array(first) + second) / 2, whole, atol=1e-5)
    assert whole[0] - whole[-1] > 1e-2


LAUNCHED = """
import sys
sys.path.insert(0, {folder!r})
from oprack import parallel
from test_distributed_programs import with_half_of_the_batch
world = parallel.init()
for name in ("fused", "sharding"):
    found = world.gather_facts(with_half_of_the_batch(name, world))
    if world.rank == 0:
        print(name, *[(a + b) / 2 for a, b in zip(*found)])
"""


def test_two_processes_that_were_launched(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    script = tmp_path / "train.py"
    script.write_text(LAUNCHED.format(folder=str(Path(__file__).parent)))
    command = [sys.executable, "-m", "oprack", "launch", "-n", "2", "--timeout", "20", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    whole = trained("one_fused", 0, *small_net())
    found = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    for name in ("fused", "sharding"):
        np.testing.assert_allclose([float(v) for v in found[name].split()], whole, atol=1e-5)


def test_the_programs_are_of_these_kinds() -> None:
    fused, sharding = (program(f"{name}.0.main").op_types() for name in ("fused", "sharding"))
    assert "coalesce_tensor" in fused
    assert {"c_broadcast", "c_reduce_sum"} <= sharding
    kept = [program(f"sharding.{r}.startup").global_block().vars for r in (0, 1)]
    assert "c.w_0" in kept[1] and "c.w_0" not in kept[0]


SPLIT = {"table": 0, "up.w": 1, "up.b": 0, "down.w": 0, "head.w": 1, "head.b": 0}
TENSOR_SHAPES = {
    "table": (12, 8),
    "up.w": (8, 8),
    "up.b": (8,),
    "down.w": (8, 8),
    "down.b": (8,),
    "head.w": (8, 12),
    "head.b": (12,),
}


def test_tensor_parallel_programs_train_as_one() -> None:
    """Two groups of two ranks, which the startup programs form; each group has half of the rows."""
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 12, (BATCH, 3)), rng.integers(0, 12, (BATCH, 1))
    start = drawn(TENSOR_SHAPES)
    whole = trained("one_tensor", 0, {"x": x, "y": y}, start)

    def rank(world: Any) -> list[float]:
        group, inside = divmod(world.rank, 2)
        rows = slice(group * BATCH // 2, (group + 1) * BATCH // 2)
        parts = {n: np.split(v, 2, SPLIT[n])[inside] if n in SPLIT else v for n, v in start.items()}
        return trained("tensor", world.rank, {"x": x[rows], "y": y[rows]}, parts)

    found = np.array(ThreadWorld(4).run(rank))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose((found[0] + found[2]) / 2, whole, atol=1e-5)
    assert whole[0] - whole[-1] > 1e-2


def test_paddles_program_of_one_trainer_is_distributed() -> None:
    """The same net over the same grid, by `parallel.distribute` instead of fleet."""
    rng = np.random.default_rng(3)
    feed = {"x": rng.integers(0, 12, (BATCH, 3)), "y": rng.integers(0, 12, (BATCH, 1))}
    start = drawn(TENSOR_SHAPES)
    whole = trained("one_tensor", 0, feed, start)
    main, startup = program("one_tensor.0.main"), program("one_tensor.0.startup")
    loss = (FOLDER / "one_tensor.0.loss").read_text().strip()

    def rank(world: Any) -> list[float]:
        grid = parallel.placement(shape=(2, 2))
        layouts = {n: ["B", f"S({dim})"] for n, dim in SPLIT.items()} | {n: ["S(0)", "B"] for n in feed}
        mine = parallel.distribute(main, startup, grid, layouts)
        scope, executor = Scope(), Executor()
        executor.run(mine.startup, scope=scope)
        mine.set_state(scope, start)
        rows = {n: np.split(v, 2)[grid.coords[0]] for n, v in feed.items()}
        return [executor.run(mine.main, feed=rows, fetch_list=[loss], scope=scope)[0].item() for _ in range(STEPS)]

    for found in ThreadWorld(4).run(rank):
        np.testing.assert_allclose(found, whole, atol=1e-5)
