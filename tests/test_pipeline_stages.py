"""Pipelines with several stages on a rank, skips, tied weights and LoD, on grids of ranks: the losses of one rank."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pipeline_nets as nets
import pytest
from oprack import parallel
from oprack.errors import CollectiveError, InvalidArgumentError, NotFoundError
from oprack.parallel.training.schedule import Action, Schedule
from oprack.testing.worlds import ThreadWorld


@pytest.fixture(scope="module")
def alone() -> list[float]:
    return nets.trained_whole()


# The schedule ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("each", [1, 2, 3])
def test_the_bubble_is_that_of_the_formula(ranks: int, each: int) -> None:
    for pieces in (ranks, 2 * ranks, 5 * ranks):
        found = Schedule(ranks, each * ranks, pieces).bubble
        assert found == pytest.approx((ranks - 1) / (each * pieces), abs=1e-12)  # Narayanan et al. 2021, section 2.2


@pytest.mark.parametrize(("ranks", "each", "pieces"), [(2, 1, 5), (3, 2, 7), (4, 3, 5), (4, 1, 2), (4, 2, 3)], ids=str)
def test_ranks_whose_messages_wait_for_each_other_come_to_the_end(ranks: int, each: int, pieces: int) -> None:
    schedule = Schedule(ranks, ranks * each, pieces, [(0, ranks * each - 1)])
    left = [schedule.steps(r) for r in range(ranks)]
    assert sum(isinstance(s, Action) for steps in left for s in steps) == 2 * ranks * each * pieces
    met = True
    while met:
        met = False
        left = [_behind_actions(steps) for steps in left]
        for r, steps in enumerate(left):
            other = next((o for o in range(ranks) if o != r and steps and left[o] and left[o][0] == steps[0]), None)
            if other is not None:
                left[r], left[other], met = steps[1:], left[other][1:], True
    assert left == [[] for _ in range(ranks)]


def _behind_actions(steps: list[Any]) -> list[Any]:
    at = next((k for k, s in enumerate(steps) if not isinstance(s, Action)), len(steps))
    return steps[at:]


# Losses ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("ranks", "pieces"), [(1, 2), (2, 2), (2, 3), (4, 6)], ids=str)
def test_skips_tied_weights_and_several_stages_give_the_losses_of_one_rank(
    ranks: int, pieces: int, alone: list[float]
) -> None:
    def rank(world: parallel.Communicator) -> Any:
        return nets.trained_in_stages(pieces)

    for r, (found, held, sums) in enumerate(ThreadWorld(ranks).run(rank)):
        np.testing.assert_allclose(found, alone, rtol=1e-5)
        assert sums == pytest.approx(alone[0], rel=1e-5)  # evaluate(), before the first step
        if ranks == 4:
            assert held == min(4 - r, pieces)


@pytest.mark.parametrize(
    ("grid", "axes", "pieces"),
    [
        ((2, 2), ("data", "pipeline"), 3),
        ((2, 2, 2), ("pipeline", "data", "tensor"), 2),
    ],
    ids=["data", "data-tensor"],
)
def test_stages_may_lie_on_grids_of_ranks(
    grid: tuple[int, ...], axes: tuple[str, ...], pieces: int, alone: list[float]
) -> None:
    def rank(world: parallel.Communicator) -> Any:
        return nets.trained_on_a_grid(parallel.placement(shape=grid, axes=axes), pieces)

    for found, inside in ThreadWorld(int(np.prod(grid))).run(rank):
        np.testing.assert_allclose(found, alone, rtol=1e-5)
        assert inside == [a for a in axes if a != "pipeline"]


def test_sequences_pass_through_stages_with_empty_ones_first_in_the_middle_and_last() -> None:
    wanted = nets.trained_on_sequences(None)

    def rank(world: parallel.Communicator) -> list[float]:
        return nets.trained_on_sequences(world)

    for found in ThreadWorld(2).run(rank):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_gradients_of_several_batches_add_up() -> None:
    def rank(world: parallel.Communicator) -> dict[str, Any]:
        pipe = nets.pipeline(2)
        for _ in range(2):
            nets.train(pipe)
        twice = {n: p.grad.numpy() for n, p in pipe.named_parameters()}
        for p in pipe.parameters():
            p.clear_grad()
        nets.train(pipe)
        return {n: (twice[n], p.grad.numpy()) for n, p in pipe.named_parameters()}

    tied = {}
    for found in ThreadWorld(2).run(rank):
        for name, (twice, once) in found.items():
            np.testing.assert_allclose(twice, 2 * once, rtol=1e-4, atol=1e-6)
            tied |= {name: once} if name in ("0.table.weight", "3.table") else {}
    np.testing.assert_array_equal(*tied.values())


def test_gradients_are_clipped_by_the_norm_of_all_stages() -> None:
    whole = nets.Whole()
    nets.loss_of(whole(oprack.to_tensor(nets.IDS)), oprack.to_tensor(nets.LABELS)).backward()
    wanted = parallel.clip_grad_norm(whole.parameters(), 0.1)
    gradient = whole.second.linear.weight.grad.numpy()

    def rank(world: parallel.Communicator) -> Any:
        pipe = nets.pipeline(2)
        nets.train(pipe)
        return pipe.clip_grad_norm(0.1), dict(pipe.named_parameters())

    for r, (norm, parameters) in enumerate(ThreadWorld(2).run(rank)):
        assert norm == pytest.approx(wanted, rel=1e-5)
        if r == 1:
            np.testing.assert_allclose(parameters["1.linear.weight"].grad.numpy(), gradient, rtol=1e-4, atol=1e-7)


def test_ranks_that_are_processes_train_as_one(tmp_path: Path, alone: list[float]) -> None:
    pytest.importorskip("mpi4py", reason="the plugin mpi starts ranks")
    out = tmp_path / "losses.json"
    command = [sys.executable, "-m", "oprack", "launch", "-n", "2", "--timeout", "60", nets.__file__, str(out)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(out.read_text())
    assert found["ranks"] == 2
    np.testing.assert_allclose(found["losses"], alone, rtol=1e-5)


# What is refused ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"skips": {"residual": (2, 1)}}, InvalidArgumentError, "'residual' leads from stage 2 to stage 1 of 4"),
        ({"skips": {"other": (0, 2)}}, InvalidArgumentError, r"stage 0 gives \['h', 'residual', 'scale'\]; expected a"),
        ({"tied": [{0: "table.weight", 3: "weight"}]}, NotFoundError, "stage 3 has no weight 'weight' to tie"),
        ({"tied": [{0: "table.weight", 1: "linear.weight"}]}, CollectiveError, "expected the same in all stages"),
        ({"axis": "rows"}, InvalidArgumentError, "axis 'rows' of placement"),
    ],
    ids=["skip-back", "skip-missing", "no-weight", "other-shape", "no-axis"],
)
def test_what_makes_no_pipeline_is_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    def rank(world: parallel.Communicator) -> None:
        nets.train(nets.pipeline(2, placement=parallel.placement(axes=("pipeline",)), **changes))

    with pytest.raises(error, match=message):
        ThreadWorld(2).run(rank)


def test_a_part_of_a_grid_is_a_placement_of_its_own() -> None:
    def rank(world: parallel.Communicator) -> Any:
        grid = parallel.placement(shape=(2, 2), axes=("stage", "tensor"))
        part = grid.without("stage")
        assert part is grid.without("stage")
        assert part.axes == ("tensor",)
        with pytest.raises(InvalidArgumentError, match="expected one of stage, tensor"):
            grid.without("data")
        x = oprack.to_tensor(np.full(4, float(grid.coords[0]), "float32")).to_global(part, "S(0)", from_whole=True)
        return x.sum().item()

    assert ThreadWorld(4).run(rank) == [0.0, 0.0, 4.0, 4.0]
