"""Generated programs with global tensors agree with one rank, and the search finds what was wrong before."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import functional as F
from oprack import parallel, to_tensor
from oprack.errors import CollectiveError
from oprack.interpreter.op_expr import OpExpr
from oprack.packs.manager import default_manager
from oprack.parallel.layouts.layout import Layout
from oprack.testing.fuzz.ranks.programs import Maker, search
from oprack.testing.fuzz.ranks.runs import Call, RankProgram, Start, accepted, check, summable
from oprack.testing.worlds import ThreadWorld

ROOT = Path(__file__).parent
CASES = ROOT / "data" / "cases"
RECORDS = sorted((ROOT.parent / "op_packages").glob("*/tests/cases"))
ALL_RANKS = """
import sys
from oprack.testing.fuzz.__main__ import main
sys.exit(main(["ranks", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("seed", [0, 1000])
def test_generated_programs_are_those_of_one_rank(seed: int) -> None:
    found = search(Maker([CASES], RECORDS), seed, programs=30)
    assert found.programs > 20
    assert not found.failures, "\n".join(found.failures)


def test_the_search_finds_ranks_that_choose_by_their_own_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Layout, "largest_part", Layout.local_shape)
    said: list[str] = []
    maker = Maker([CASES], RECORDS, ops=["relu", "matmul_v2", "elementwise_add"])
    found = search(maker, 0, programs=60, say=said.append, most=1)
    assert "different" in found.failures[0]
    assert "grid" in said[0]


def test_real_ranks_agree_as_well(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    program = tmp_path / "programs.py"
    program.write_text(ALL_RANKS)
    options = ["--seed", "7", "--programs", "10", "--cases", str(CASES)]
    command = [sys.executable, "-W", "ignore", "-m", "oprack", "launch", "-n", "4", "--timeout", "20", str(program)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failures (seed 7, rank 3 of 4)" in done.stdout


def _several(op_type: str, inputs: str, outputs: str, **attrs: Any) -> Call:
    """A call whose tensors are named after their slots."""
    info = default_manager().op_info(op_type)
    slots, results = inputs.split(), outputs.split()
    wanted = tuple((slot, (True,)) for slot in results)
    expr = OpExpr(info, info.checker.check(attrs), tuple((slot, 1) for slot in slots), wanted, {}, flat=True)
    return Call(expr, tuple(slots), tuple(results))


def _of_list(op_type: str, count: int) -> OpExpr:
    info = default_manager().op_info(op_type)
    return OpExpr(info, {}, (("X", count),), (("Out", (True,)),), {}, flat=True)


def _start(name: str, array: np.ndarray, sbp: str, *lod: tuple[int, ...], grad: bool = False) -> Start:
    return Start(name, array, lod, (sbp,), grad, True)


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape)


def _ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)[:, None]


FOUND = {
    # One rank takes the LoD of the first input for both, or the last level of each
    "a label of other sequences": (
        [
            _start("Emission", _normal(6, 3), "S(0)", (0, 1, 4, 6)),
            _start("Transition", _normal(5, 3), "B"),
            _start("Label", _ids(0, 1, 2, 0, 1, 2), "B", (0, 3, 4, 6)),
        ],
        _several("linear_chain_crf", "Emission Transition Label", "Alpha EmissionExps TransitionExps LogLikelihood"),
    ),
    "updates of other sequences": (
        [
            _start("X", _normal(3, 6), "B"),
            _start("Ids", _ids(0, 1, 2, 3, 4, 5), "B", (0, 2, 4, 6)),
            _start("Updates", _normal(6, 1), "S(0)", (0, 1, 1, 6)),
        ],
        _several("sequence_scatter", "X Ids Updates", "Out"),
    ),
    "outer sequences of others": (
        [
            _start("Hyps", _ids(*range(8)), "B", (0, 0, 5), (0, 4, 6, 6, 6, 8)),
            _start("Refs", _ids(1, 2, 5), "S(0)", (0, 5, 5), (0, 1, 2, 2, 3, 3)),
        ],
        _several("edit_distance", "Hyps Refs", "SequenceNum Out"),
    ),
    "sequences of another level": (
        [_start("X", _normal(9, 1), "S(0)", (0, 3, 9)), _start("Y", _normal(6, 1), "B", (0, 0, 2), (0, 2, 6))],
        _several("sequence_expand", "X Y", "Out", ref_level=-1),
    ),
    "one input of a list with another level": (
        [_start("X", _normal(7, 2), "B", (0, 4, 7)), _start("Y", _normal(6, 2), "S(0)", (0, 0, 2), (0, 1, 6))],
        Call(_of_list("sequence_concat", 2), ("X", "Y"), ("Out",)),
    ),
    "as many sequences as rows": (
        [_start("Input", _normal(6, 2), "S(0)", (0, 2, 5, 5, 5, 6, 6))],
        _several("fill_constant_batch_size_like", "Input", "Out", shape=[-1, 3], dtype=5, value=2.0),
    ),
    # The sparse gradient of a table has the row of padding_idx
    "a padded row of a table in parts": (
        [_start("W", _normal(8, 2), "S(0)", grad=True), _start("Ids", _ids(2, 5, 2, 7), "B")],
        _several("lookup_table_v2", "W Ids", "Out", padding_idx=2, is_sparse=True),
    ),
}


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", FOUND)
def test_what_the_search_found(name: str, ranks: int) -> None:
    starts, call = FOUND[name]
    program = RankProgram((ranks,), tuple(starts), (call,))
    assert accepted(program) is not None
    assert check(program) == ""


def _call(op_type: str, in_place: bool = False, **attrs: Any) -> OpExpr:
    info = default_manager().op_info(op_type)
    checked = info.checker.check(attrs) if info.checker is not None else attrs
    outputs = (("Out", (True,)),) if op_type != "dropout" else (("Out", (True,)), ("Mask", (True,)))
    return OpExpr(info, checked, (("X", 1),), outputs, {"X": "Out"} if in_place else {}, flat=True)


def test_programs_that_draw_random_numbers_are_left_out() -> None:
    """One element is dropped or kept, so two draws are often alike: by them nobody tells that something is drawn."""
    start = Start("t0", np.array([0.5]), (), ("P",), False, True)
    for attrs, usable in ({}, False), ({"fix_seed": True, "seed": 3}, False), ({"is_test": True}, True):
        program = RankProgram((3,), (start,), (Call(_call("dropout", **attrs), ("t0",), ("t1", "")),))
        for _ in range(8):
            assert (accepted(program) is not None) is usable


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_summands_of_a_partial_sum_are_exact_in_any_order(dtype: type) -> None:
    x = summable(np.random.default_rng(3).standard_normal(500).astype(dtype))
    summands = [x * dtype(a * b) for a in (0.5, 0.25, 0.125, 0.125) for b in (0.5, 0.5)]
    for order in range(8):
        np.testing.assert_array_equal(sum(np.roll(summands, order, axis=0)), x)


def test_float32_arithmetic_before_a_conversion_is_compared_as_float32() -> None:
    """The sum over the parts of a matrix product has another order than the whole's; float64 then shows all of it."""
    numbers = np.random.default_rng(5)
    x, y = (numbers.standard_normal(shape).astype(np.float32) for shape in ((3, 300), (300, 2)))
    starts = Start("t0", x, (), ("S(1)",), False, True), Start("t1", y, (), ("S(0)",), False, True)
    info = default_manager().op_info("matmul_v2")
    expr = OpExpr(info, info.checker.check({}), (("X", 1), ("Y", 1)), (("Out", (True,)),), {}, flat=True)
    cast = _call("cast", in_dtype=5, out_dtype=6)
    assert check(RankProgram((4,), starts, (Call(expr, ("t0", "t1"), ("t2",)), Call(cast, ("t2",), ("t3",))))) == ""


def test_a_tensor_in_whose_memory_another_lies_is_not_overwritten() -> None:
    """On one process the other one changes as well; a write to a global tensor is seen in that alone."""
    start = Start("t0", np.array([0.5]), (), ("B", "B"), False, True)
    viewed = RankProgram((3, 2), (start,), (Call(_call("unbind", axis=0), ("t0",), ("t1",)),))
    found = accepted(viewed)
    assert found is not None
    assert found.shared == {"t0", "t1"}
    apart = accepted(replace(viewed, steps=(Call(_call("log2"), ("t0",), ("t1",)),)))
    assert apart is not None
    assert not apart.shared
    written = replace(viewed, steps=(*viewed.steps, Call(_call("log2", in_place=True), ("t0",), ("t0",))))
    assert "t1: 1 of 1 elements differ" in check(written)


def test_no_tensor_gets_two_results_of_a_call_in_place() -> None:
    """Which of them it then holds, nothing says."""
    maker, written = Maker([CASES], RECORDS, ops=["adadelta"]), 0
    for seed in (17, 26):
        for step in maker.program(seed)[0].steps:
            if isinstance(step, Call) and step.expr.in_place:
                assert len({*step.makes}) == len(step.makes)
                written += 1
    assert written


def test_slow_ranks_are_waited_for_and_stuck_ones_are_not() -> None:
    def slow(world: Any) -> Any:
        if world.rank == 1:
            time.sleep(0.3)
        return world.all_reduce(np.ones(1)), world.rank and world.receive([1], "f8", 0)

    def sends(world: Any) -> Any:
        if world.rank == 0:
            world.send(np.ones(1), 1)
        return slow(world)

    assert len(ThreadWorld(2).run(sends)) == 2
    start = time.monotonic()
    with pytest.raises(CollectiveError, match=r"of 2 ranks 1 have ended and all others wait.*receive from rank 0"):
        ThreadWorld(2).run(slow)  # nobody sends

    def ring(world: Any) -> None:
        groups = [parallel.placement("cpu", (2, 2)).group(axis) for axis in (0, 1)]
        groups[world.rank in (1, 2)].all_reduce(np.ones(1))  # 0 waits for 2, which for 3, which for 1, which for 0

    with pytest.raises(CollectiveError, match=r"(?=.*axis0)(?=.*axis1).*of 4 ranks 0 have ended and all others wait"):
        ThreadWorld(4).run(ring)
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    ("shape", "sbps", "axes"),
    [
        ((2, 8), "S(0)", []),  # each rank has one row, which is no dim of size 1
        ((3, 1, 4), "S(0)", []),
        ((4, 2), "S(1)", []),
        ((1, 3, 1, 2), "S(1)", [0, 1]),  # of which the second is 3
        ((2, 3), "S(1)", []),  # nothing goes
    ],
)
def test_squeeze_goes_by_the_shape_of_the_whole(shape: tuple[int, ...], sbps: str, axes: list[int]) -> None:
    value = np.arange(float(np.prod(shape))).reshape(shape)
    want = value.reshape([n for k, n in enumerate(shape) if n != 1 or (axes and k not in axes)])

    def rank(_: Any) -> Any:
        x = to_tensor(value).to_global(parallel.placement(), sbps, from_whole=True)
        return F.squeeze2(x, axes=axes).numpy()

    for found in ThreadWorld(2).run(rank):
        np.testing.assert_array_equal(found, want)


def test_a_global_tensor_may_get_another_shape_in_place() -> None:
    def rank(_: Any) -> Any:
        x = to_tensor(np.arange(12.0).reshape(4, 3)).to_global(parallel.placement(), "S(0)", from_whole=True)
        F.reshape2(x, shape=[2, 6], in_place=True)
        return x.shape, x.numpy()

    for shape, found in ThreadWorld(2).run(rank):
        assert shape == (2, 6)
        np.testing.assert_array_equal(found, np.arange(12.0).reshape(2, 6))


def test_pooling_sequences_of_sequences() -> None:
    x = np.arange(16.0).reshape(8, 2)

    def rank(_: Any) -> Any:
        whole = to_tensor(x, lod=[[0, 1, 3], [0, 2, 5, 8]])
        whole.requires_grad = True
        y = F.sequence_pool(whole.to_global(parallel.placement(), "S(0)", from_whole=True), pooltype="MAX")
        y.sum().backward()
        return y.numpy(), whole.grad.numpy()

    for found, gradient in ThreadWorld(2).run(rank):
        np.testing.assert_array_equal(found, x[[1, 4, 7]])
        np.testing.assert_array_equal(gradient, np.isin(np.arange(8), [1, 4, 7])[:, None].repeat(2, 1))


def test_simulated_ranks_do_not_share_arrays() -> None:
    def rank(world: Any) -> Any:
        mine = np.full(3, world.rank + 1.0)
        total = world.all_reduce(mine)
        gathered = world.exchange(mine)
        mine[...] = 100
        world.barrier()
        return total, gathered

    for total, gathered in ThreadWorld(2).run(rank):
        np.testing.assert_array_equal(total, [3, 3, 3])
        np.testing.assert_array_equal(gathered, [[1, 1, 1], [2, 2, 2]])


def test_ranks_that_part_late_are_told() -> None:
    def late(kind: str) -> Any:
        def rank(world: Any) -> Any:
            for _ in range(300):
                world.all_reduce(np.ones(4, "f4"))
            if kind == "op":  # of no new kind on either rank
                world.all_reduce(np.ones(4, "f4"), "max")
            for k in range(60):
                other = world.rank and k == 7
                if kind == "dtype":
                    world.all_reduce(np.ones(4, "i4" if other else "f4"))
                else:
                    world.all_reduce(np.ones(4, "f4"), "max" if other else "sum")

        return rank

    with pytest.raises(CollectiveError, match="the ranks run different collectives"):
        ThreadWorld(2, 2.0).run(late("dtype"))
    with pytest.raises(CollectiveError, match="ran different collectives since they were compared last"):
        ThreadWorld(2, 2.0).run(late("op"))


def test_layouts_that_ranks_choose_and_groups_that_they_open_are_compared() -> None:
    def layouts(world: Any) -> None:
        world.agree(("relu", 7), ["S(0)" if world.rank else "S(1)"], "layouts of op relu")

    with pytest.raises(CollectiveError, match=r"decide differently on layouts of op relu.*rank 0: \['S\(1\)'\]"):
        ThreadWorld(2, 2.0).run(layouts)

    def groups(world: Any) -> None:
        parallel.placement("cpu", (2, 2)).group(world.rank % 2)

    with pytest.raises(CollectiveError, match=r"the ranks run different collectives\. rank 0: split axis0"):
        ThreadWorld(4, 2.0).run(groups)


def test_diagonals_lie_where_their_dims_say() -> None:
    value = np.arange(6.0).reshape(3, 2)

    def rank(_: Any) -> Any:
        x = to_tensor(value).to_global(parallel.placement(), "S(0)", from_whole=True)
        return F.diag_embed(x, dim1=0, dim2=2).numpy()

    for found in ThreadWorld(2).run(rank):
        np.testing.assert_array_equal(found, np.einsum("ni,ij->inj", value, np.eye(2)))
