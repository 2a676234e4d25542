"""Boxing on 2, 3 and 4 ranks that are threads: every pair of layouts, uneven and empty parts."""

import itertools

import numpy as np
import pytest
from oprack.errors import CollectiveError, InvalidArgumentError
from oprack.parallel import Layout, box, broadcast, partial_sum, placement, split
from oprack.parallel.layouts.boxing import route
from oprack.parallel.layouts.moving import moved
from oprack.testing.worlds import ThreadWorld

SHAPES = ((8, 6), (7, 5), (3, 1), (1, 9), (0, 4), (5, 4, 3))


def all_layouts(grid, shape):
    kinds = [broadcast, partial_sum, *(split(d) for d in range(len(shape)))]
    return [grid.layout(sbps) for sbps in itertools.product(kinds, repeat=len(grid.shape))]


def parts(whole: np.ndarray, layout: Layout, seed: int) -> dict[tuple[int, ...], np.ndarray]:
    """The part of each rank, by its place in the grid; ranks of a partial sum get random summands."""
    grid = layout.placement
    found = {}
    rng = np.random.default_rng(seed)
    axes = [k for k, s in enumerate(layout.sbps) if s.kind == "P"]
    noise: dict[tuple[int, ...], np.ndarray] = {}
    for coords in itertools.product(*map(range, grid.shape)):
        if not axes:
            value = whole
        else:
            others = tuple(c for k, c in enumerate(coords) if k not in axes)
            last = all(coords[k] == grid.shape[k] - 1 for k in axes)
            summand = rng.integers(-9, 9, whole.shape).astype(whole.dtype)
            if last:
                summand = whole - noise.get(others, 0)
            noise[others] = noise.get(others, 0) + summand
            value = summand
        # Ranks that differ only in a broadcast axis have the same part.
        key = tuple(0 if s.kind == "B" else c for s, c in zip(layout.sbps, coords, strict=True))
        found.setdefault(key, value[tuple(slice(*r) for r in layout.region(whole.shape, coords))])
        found[coords] = found[key]
    return found


def assemble(layout: Layout, shape, by_rank):
    """The whole that the ranks' parts stand for; raises where broadcast copies differ."""
    grid = layout.placement
    whole, copies = np.zeros(shape), {}
    for rank, part in enumerate(by_rank):
        coords = grid.coords_of(rank)
        region = layout.region(shape, coords)
        assert part.shape == tuple(b - a for a, b in region), (layout, coords)
        key = tuple(0 if s.kind == "B" else c for s, c in zip(layout.sbps, coords, strict=True))
        if key in copies:
            np.testing.assert_array_equal(part, copies[key])
        else:
            copies[key] = part
            whole[tuple(slice(*r) for r in region)] += part
    return whole


@pytest.mark.parametrize("grid_shape", [(2,), (3,), (4,), (2, 2), (2, 1, 2)], ids=str)
def test_every_pair_of_layouts_keeps_the_whole(grid_shape):
    cases = []

    def rank(world):
        grid = placement("cpu", grid_shape)
        results = []
        for shape in SHAPES if len(grid_shape) < 3 else SHAPES[:2]:
            whole = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
            layouts = all_layouts(grid, shape)
            pairs = list(itertools.product(layouts, layouts))
            if len(grid_shape) == 3:  # 4,096 pairs: some of them, spread over all
                pairs = pairs[::37]
            for source, target in pairs:
                own = parts(whole, source, seed=1)[grid.coords]
                results.append((shape, whole, target, box(own, shape, source, target)))
        return results

    by_rank = ThreadWorld(int(np.prod(grid_shape))).run(rank)
    for row in zip(*by_rank, strict=True):
        shape, whole, target, _ = row[0]
        np.testing.assert_array_equal(assemble(target, shape, [r[3] for r in row]), whole, err_msg=str(target))
        cases.append(target)
    assert len(cases) >= (105 if len(grid_shape) == 1 else 100)


@pytest.mark.parametrize("grids", [((4,), (2, 2)), ((2, 2), (4,)), ((2, 3), (3, 2))], ids=str)
def test_a_tensor_moves_between_grids_of_the_same_ranks(grids):
    def rank(world):
        first, second = placement("cpu", grids[0]), placement("cpu", grids[1])
        results = []
        for shape in ((8, 6), (7, 5), (3, 1), (0, 4)):
            whole = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
            for source, target in itertools.product(all_layouts(first, shape), all_layouts(second, shape)):
                own = parts(whole, source, seed=1)[first.coords]
                results.append((shape, whole, target, moved(own, shape, source, target)))
        return results

    for row in zip(*ThreadWorld(int(np.prod(grids[0]))).run(rank), strict=True):
        shape, whole, target, _ = row[0]
        np.testing.assert_array_equal(assemble(target, shape, [r[3] for r in row]), whole, err_msg=str(target))


def test_a_route_has_at_most_one_step_for_each_axis_that_changes_unless_a_split_is_nested():
    def rank(world):
        grid = placement("cpu", (2, 2))
        b, s0, s1 = broadcast, split(0), split(1)
        assert route(grid.layout([s0, b]), grid.layout([s0, b])) == ()
        assert len(route(grid.layout([s0, b]), grid.layout([s1, s0]))) == 2
        # The inner split of dim 0 goes before the outer one, and comes again.
        nested = route(grid.layout([s0, s0]), grid.layout([b, s0]))
        assert [(s.axis, s.target) for s in nested] == [(1, b), (0, b), (1, s0)]

    ThreadWorld(4).run(rank)


def test_ranks_that_run_different_collectives_are_told_what_each_runs():
    def rank(world):
        if world.rank == 0:
            world.all_reduce(np.ones(1, np.float32))
        else:
            world.all_gather(np.ones((2, 2), np.float32))

    with pytest.raises(
        CollectiveError, match=r"rank 0: all_reduce_sum float32\[1\]; rank 1: all_gather float32\[2, 2\]"
    ):
        ThreadWorld(2).run(rank)


def test_a_rank_that_raises_releases_the_others():
    def rank(world):
        if world.rank == 1:
            raise ZeroDivisionError("rank 1 is broken")
        world.barrier()

    with pytest.raises(ZeroDivisionError, match="rank 1 is broken"):
        ThreadWorld(3).run(rank)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: placement("cpu", (3, 5)), r"placement \(3, 5\) holds 15 ranks, but 1 run; start 15"),
        (lambda: placement("cpu", (1,), ("a", "b")), "expected 1 different names"),
        (lambda: placement().layout("S(0), B"), "expected oprack.parallel.split"),
        (lambda: placement().layout(["B", "B"]), "one for each of its 1 axes"),
        (
            lambda: placement().layout("S(2)").region((8, 6)),
            r"S\(2\) splits dim 2 of a tensor of shape \[8, 6\], which has 2",
        ),
        (lambda: split(-1), r"split\(-1\): expected a dim that counts from 0"),
    ],
)
def test_what_makes_no_layout_is_refused(make, message):
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_a_world_of_one_rank_needs_no_launcher():
    grid = placement("cpu")
    x = np.arange(6.0).reshape(2, 3)
    for source, target in itertools.product(all_layouts(grid, x.shape), repeat=2):
        np.testing.assert_array_equal(box(x, x.shape, source, target), x)
