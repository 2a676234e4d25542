"""The registry of passes, running them, those that know no op, and what a Config lets a predictor run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ir_ops
import numpy as np
import oprack
import pytest
from oprack.errors import GraphError, NotFoundError
from oprack.io import save_inference_model
from oprack.ir import Graph, find_pass, optimize, registered_passes, select_passes
from oprack.packs.manager import PackManager, use_manager
from oprack.packs.pack import BrokenPackWarning, PackWarning
from oprack.runtime import Executor
from oprack.tensor import CUDAPlace, Scope
from oprack.testing import PassCase, check_passes
from oprack.testing.passes import op_types
from oprack.types import AttrType

X = np.array([1.0, 2.0])
W = np.array([3.0, 5.0])
GENERIC = ["remove_dead_code", "name_every_write", "remove_identities", "fold_constants"]


@pytest.fixture
def packs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PackManager]]:
    """packs(a=lambda register: ..., b=...): a manager with these hooks for passes and the ops of ir_ops, in use."""
    used = []

    def make(**hooks: Callable[[Any], None]) -> PackManager:
        manager = ir_ops.manager_with_passes(monkeypatch, **hooks)
        used.append(use_manager(manager))
        used[-1].__enter__()
        return manager

    yield make
    for context in used:
        context.__exit__(None, None, None)


def op(kind: str, x: str, out: str, y: str | None = None, **attrs: Any) -> tuple[Any, ...]:
    return kind, {"X": x} if y is None else {"X": x, "Y": y}, {"Out": out}, attrs


def none(graph: Graph) -> int:
    return 0


def fails(graph: Graph) -> int:
    graph.new_parameter(W, "w")
    graph.remove_op(graph.ops[-1])
    raise ValueError("not today")


def breaks(graph: Graph) -> int:
    last = graph.ops[-1]
    last.inputs["X"] = [graph.new_var("nothing")]
    return 1


def says_nothing(graph: Graph) -> None:
    return None


HERE = __name__


# The registry ---------------------------------------------------------------------------------------------------------
def names(passes: list[Any]) -> list[str]:
    return [p.name for p in passes]


def test_passes_are_ordered_by_stages_and_inside_of_one_by_what_they_ask_for(packs: Callable[..., PackManager]) -> None:
    def one(register: Any) -> None:
        register.pass_("low", f"{HERE}:none", stage="lower")
        register.pass_("mine", f"{HERE}:none", stage="fuse", library="mylib")
        register.pass_("late", f"{HERE}:none", stage="fuse", after=["early", "not_installed"])

    def two(register: Any) -> None:
        register.pass_("early", f"{HERE}:none", stage="fuse", before=["late"])
        register.pass_("form", f"{HERE}:none", stage="canonicalize")
        register.pass_("fold", f"{HERE}:none", stage="fold")

    manager = packs(one=one, two=two)
    ordered = [*GENERIC, "fold", "form", "early", "late", "mine", "low"]
    assert names(registered_passes(manager)) == ordered
    assert names(registered_passes(packs(two=two, one=one))) == ordered
    early = find_pass("early")
    assert (early.owner, early.stage, early.before, early.target) == ("oprack-two", "fuse", ("late",), f"{HERE}:none")
    with pytest.raises(NotFoundError, match="no installed pack brings pass 'nothing'; there are remove_dead"):
        find_pass("nothing")


def test_what_a_pack_said_of_a_pass(packs: Callable[..., PackManager]) -> None:
    manager = packs(
        a=lambda register: register.pass_("shrink", "collections:Counter", stage="lower"),
        b=lambda register: register.pass_("grow", "os:getcwd", stage="fuse", place="cpu", reorders_sums=True),
    )
    assert names(registered_passes(manager))[-2:] == ["grow", "shrink"]
    grow = find_pass("grow", manager)
    assert (grow.owner, grow.place, grow.library) == ("oprack-b", "cpu", None)
    assert grow.reorders_sums and grow.inference_only
    assert find_pass("shrink", manager).load() is Counter


def test_a_stage_that_does_not_exist_breaks_its_pack(packs: Callable[..., PackManager]) -> None:
    with pytest.warns(BrokenPackWarning, match="stage='last'.; expected one of 'fold', 'canonicalize', 'fuse', 'low"):
        manager = packs(one=lambda register: register.pass_("p", f"{HERE}:none", stage="last"))
    assert names(registered_passes(manager)) == GENERIC


def test_a_circle_and_a_name_brought_twice(packs: Callable[..., PackManager]) -> None:
    def circle(register: Any) -> None:
        register.pass_("a", "m:f", stage="fuse", after=["b"])
        register.pass_("b", "m:f", stage="fuse", after=["a"])
        register.pass_("c", "m:f", stage="fuse", after=["b"])

    def again(register: Any) -> None:
        register.pass_("remove_dead_code", "m:f", stage="fold")

    with pytest.warns(PackWarning, match=r"in a circle: a of oprack-circle, b of oprack-circle; a runs first\. Change"):
        names = [p.name for p in registered_passes(packs(circle=circle)) if p.owner == "oprack-circle"]
    assert names == ["a", "b", "c"]
    with pytest.warns(PackWarning, match=r"'remove_dead_code' is brought by ir .* and by again .*: that of ir is"):
        assert {p.owner for p in registered_passes(packs(again=again)) if p.name == "remove_dead_code"} == {"oprack-ir"}


def test_passes_serve_a_place_and_a_library(packs: Callable[..., PackManager]) -> None:
    def many(register: Any) -> None:
        register.pass_("cpu_only", "m:f", stage="fuse", place="cpu")
        register.pass_("for_library", "m:f", stage="fuse", library="onednn", place="cpu")
        register.pass_("loose", "m:f", stage="fuse", reorders_sums=True)
        register.pass_("always", "m:f", stage="fuse", inference_only=False)

    packs(many=many)
    mine = ["loose", "always", "cpu_only", "for_library"]
    assert names(select_passes()) == [*GENERIC, *mine]
    assert names(select_passes(CUDAPlace(0))) == [*GENERIC, "loose", "always"]
    assert names(select_passes(excluded_libraries=["onednn"])) == [*GENERIC, "loose", "always", "cpu_only"]
    assert names(select_passes(strict=True)) == [*GENERIC, "always", "cpu_only", "for_library"]
    assert names(select_passes(inference=False)) == ["remove_dead_code", "always"]


# Running --------------------------------------------------------------------------------------------------------------
def two_ops() -> tuple[Any, Scope]:
    return PassCase({"x": X}, {"w": W}, [op("plus", "x", "y", "w"), op("plus", "y", "z", "y")]).build()


def test_reports_say_what_each_pass_did(packs: Callable[..., PackManager]) -> None:
    packs()
    case = PassCase({"x": X}, {"w": W, "v": W}, [op("copy", "x", "a"), op("plus", "a", "y", "w"),
                                                  op("plus", "v", "unread", "w")], ["y"])  # fmt: skip
    done = check_passes(case)
    seen = [(r.name, r.owner, r.matches, r.ops_before, r.ops_after) for r in done.reports]
    assert seen == [("remove_dead_code", "oprack-ir", 1, 3, 2), ("name_every_write", "oprack-ir", 0, 2, 2),
                    ("remove_identities", "oprack-ir", 1, 2, 1), ("fold_constants", "oprack-ir", 0, 1, 1)]  # fmt: skip
    assert done.unused == ["v"] and all(r.milliseconds >= 0 for r in done.reports)


@pytest.mark.parametrize(
    "target,reason",
    [
        ("fails", "ValueError: not today"),
        ("says_nothing", "PackError: .* returned None; expected how often it rewrote the graph"),
        ("is_not_there", "PackImportError: .* names nothing"),
        ("HERE", "TypeError: 'str' object is not callable"),
    ],
)
def test_a_pass_that_fails_is_reported_and_leaves_no_trace(
    packs: Callable[..., PackManager], target: str, reason: str
) -> None:
    packs(bad=lambda register: register.pass_("bad", f"{HERE}:{target}", stage="fold", after=["remove_identities"]))
    program, scope = two_ops()
    with pytest.warns(BrokenPackWarning, match=f"pass bad of oprack-bad is left out: {reason}"):
        done = optimize(program.desc, scope, keep=["z"])
    assert [o.type for o in done.program.blocks[0].ops] == ["plus", "plus"] and scope.local_var_names() == ["w"]
    assert [bool(r.error) for r in done.reports] == [r.name == "bad" for r in done.reports]
    (z,) = Executor().run(done.program, {"x": X}, ["z"], scope)
    assert (z == 2 * (X + W)).all()


def test_debugging_finds_the_pass_that_breaks_a_program(
    packs: Callable[..., PackManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    packs(bad=lambda register: register.pass_("bad", f"{HERE}:breaks", stage="fuse"))
    program, scope = two_ops()
    with pytest.raises(GraphError, match=r"pass bad of oprack-bad: .*which does not count it"):
        optimize(program.desc, scope, keep=["z"], debug=True)
    monkeypatch.setenv("OPRACK_IR_DEBUG", "1")
    with pytest.raises(GraphError, match="pass bad of oprack-bad"):
        optimize(program.desc, scope, keep=["z"])
    assert scope.local_var_names() == ["w"]


# Dead code ------------------------------------------------------------------------------------------------------------
def left(
    ops: list[tuple[Any, ...]], fetch: list[str], *passes: str, params: Any = None, feeds: Any = None
) -> list[str]:
    case = PassCase({"x": X} if feeds is None else feeds, {"w": W} if params is None else params, ops, fetch)
    return op_types(check_passes(case, *passes))


def test_dead_code(packs: Callable[..., PackManager]) -> None:
    packs()
    dead = [op("twice", "x", "a"), op("twice", "a", "b"), op("twice", "x", "y")]
    assert left(dead, ["y"], "remove_dead_code") == ["twice"]
    assert left(dead, ["y", "b"], "remove_dead_code") == ["twice"] * 3
    assert left([op("twice", "x", "y"), op("copy", "y", "w")], ["y"], "remove_dead_code") == ["twice", "copy"], (
        "a parameter is written"
    )
    overwritten = [op("twice", "x", "y"), op("plus", "x", "y", "w")]
    assert left(overwritten, ["y"], "remove_dead_code") == ["plus"]


def test_ops_that_are_wanted_or_run_themselves_stay(packs: Callable[..., PackManager]) -> None:
    manager = packs()
    program, scope = PassCase({"x": X}, {}, [op("twice", "x", "y"), op("twice", "x", "z")]).build()
    block = program.desc.blocks[0]
    block.ops[1].is_target = True
    sub = program.desc.append_block(block)
    sub.create_var("t", dtype="float64", shape=[-1])
    sub.append_op("twice", {"X": "y"}, {"Out": "t"})
    block.append_op("repeat", {"X": ["y"]}, {"Out": []}).set_attr("sub_block", 1, AttrType.BLOCK)
    done = optimize(program.desc, scope, passes=[find_pass("remove_dead_code", manager)], debug=True)
    assert [len(b.ops) for b in done.program.blocks] == [3, 0], "t is local to the block, and nobody reads it"


def test_ops_that_draw_draw_the_same_numbers(packs: Callable[..., PackManager]) -> None:
    packs()
    ops = [op("twice", "x", "dead"), op("copy", "x", "c"), op("draw", "c", "y")]
    program, scope = PassCase({"x": X}, {}, ops).build()
    done = optimize(program.desc, scope, keep=["y"], debug=True)
    assert [o.type for o in done.program.blocks[0].ops] == ["draw"]
    plain, changed = (Executor(seed=3).run(p, {"x": X}, ["y"], scope)[0] for p in (program, done.program))
    again = optimize(done.program, scope, keep=["y"]).program
    assert (plain == changed).all() and (plain == Executor(seed=3).run(again, {"x": X}, ["y"], scope)[0]).all()


# Names ----------------------------------------------------------------------------------------------------------------
def written(ops: list[Any], fetch: list[str]) -> list[str]:
    """What the ops write after name_every_write; a name made from "y" is "y'"."""
    done = check_passes(PassCase({"x": X}, {"w": W}, ops, fetch), "name_every_write")
    outputs = [name for op in done.program.blocks[0].ops for name in op.output_arg_names()]
    assert len(set(outputs)) == len(outputs)
    return [f"{name.split('.ir_')[0]}'" if ".ir_" in name else name for name in outputs]


def test_every_write_gets_a_name(packs: Callable[..., PackManager]) -> None:
    packs()
    chain = [op("twice", "x", "y"), op("twice", "y", "y"), op("plus", "y", "z", "w"), op("plus", "y", "y", "z")]
    assert written(chain, ["y"]) == ["y'", "y'", "z", "y"], "what is fetched keeps its name"
    assert written([*chain, op("twice", "y", "out")], ["out"]) == ["y'", "y'", "z", "y", "out"]
    assert written([op("twice", "x", "x"), op("twice", "x", "out")], ["out"]) == ["x'", "out"], "a feed is written"


def test_parameters_and_drawn_numbers_keep_their_names(packs: Callable[..., PackManager]) -> None:
    packs()
    program, scope = PassCase({"x": X}, {"w": W.copy()}, [op("twice", "w", "w"), op("plus", "x", "y", "w")]).build()
    done = optimize(program.desc, scope, keep=["y"], passes=[find_pass("name_every_write")], debug=True)
    assert done.reports[0].matches == 0, "the next run reads it"
    ops = [op("draw", "x", "y"), op("twice", "y", "y"), op("copy", "y", "z")]
    program, scope = PassCase({"x": X}, {}, ops).build()
    done = optimize(program.desc, scope, keep=["z"], passes=[find_pass("name_every_write")], debug=True)
    assert done.reports[0].matches == 1
    plain, changed = (Executor(seed=3).run(p, {"x": X}, ["z"], scope)[0] for p in (program, done.program))
    assert (plain == changed).all()


# Identities -----------------------------------------------------------------------------------------------------------
def test_identities(packs: Callable[..., PackManager]) -> None:
    packs()
    chain = [op("twice", "x", "a"), op("copy", "a", "b"), op("copy", "b", "c"), op("twice", "c", "y")]
    assert left(chain, ["y"], "remove_identities") == ["twice", "twice"]
    assert left(chain, ["b", "y"], "remove_identities") == ["twice", "twice"]
    assert left(chain, ["a", "b", "y"], "remove_identities") == ["twice", "copy", "twice"]
    both = [op("twice", "x", "a"), ("copy", {"X": "a"}, {"Out": "b", "Also": "c"}), op("plus", "b", "y", "c")]
    assert left(both, ["y"], "remove_identities") == ["twice", "copy", "plus"], "its other output is read"
    assert left([op("copy", "x", "y")], ["y"], "remove_identities") == ["copy"], "a feed keeps its name"
    assert left([op("times", "x", "y", "w", by=2.0)], ["y"], "remove_identities") == ["times"]


# Constants ------------------------------------------------------------------------------------------------------------
def test_constants_are_folded(packs: Callable[..., PackManager]) -> None:
    packs()
    ops = [op("plus", "w", "a", "w"), op("times", "a", "b", "w"), op("plus", "x", "y", "b")]
    assert left(ops, ["y"], "fold_constants") == ["plus"]
    assert left(ops, ["a", "y"], "fold_constants") == ["plus", "times", "plus"], "what is fetched is computed"


@pytest.mark.parametrize(
    "ops,kept",
    [
        ([op("draw", "w", "a"), op("plus", "x", "y", "a")], ["draw", "plus"]),
        ([op("grow", "w", "a", n=1), op("plus", "x", "y", "a")], ["plus"]),
        ([op("grow", "w", "a", n=1, open=True), op("plus", "x", "y", "a")], ["grow", "plus"]),
        ([op("grow", "w", "a", n=1 << 21), op("grow", "x", "y", n=1 << 21), op("plus", "a", "z", "y")],
         ["grow", "grow", "plus"]),
        ([op("twice", "w", "w"), op("plus", "x", "y", "w")], ["twice", "plus"]),
    ],
)  # fmt: skip
def test_what_is_no_constant(packs: Callable[..., PackManager], ops: list[Any], kept: list[str]) -> None:
    """What draws, what is too large or of unknown size, and what the program writes."""
    packs()
    program, scope = PassCase({"x": X}, {"w": W}, ops).build()
    out = ops[-1][2]["Out"]
    done = optimize(program.desc, scope, keep=[out], passes=[find_pass("fold_constants")], debug=True)
    assert [o.type for o in done.program.blocks[0].ops] == kept


def test_an_op_that_fails_is_left_for_the_run(packs: Callable[..., PackManager]) -> None:
    packs()
    case = PassCase({"x": X}, {"w": W, "v": np.ones(3)}, [op("plus", "w", "a", "v"), op("plus", "x", "y", "a")])
    program, scope = case.build()
    done = optimize(program.desc, scope, keep=["y"])
    assert len(done.program.blocks[0].ops) == 2


# Predictors -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def model(packs: Callable[..., PackManager], tmp_path: Path) -> Path:
    """y = x + (w + w), with a copy in between; packs bring a strict pass and one that reorders sums."""

    def hook(register: Any) -> None:
        register.pass_("strict", f"{HERE}:none", stage="fuse")
        register.pass_("loose", f"{HERE}:none", stage="fuse", reorders_sums=True)

    packs(more=hook)
    ops = [op("plus", "w", "v", "w"), op("copy", "x", "c"), op("plus", "c", "y", "v")]
    program, scope = PassCase({"x": X}, {"w": W}, ops).build()
    save_inference_model(tmp_path / "m", program, ["x"], ["y"], scope)
    return tmp_path


def test_a_predictor_runs_the_passes_once_for_all_its_clones(model: Path) -> None:
    predictor = oprack.inference.create_predictor(oprack.inference.Config(str(model)))
    assert (predictor.run([X])[0] == X + 2 * W).all()
    clone = predictor.clone()
    assert (clone.run([X])[0] == X + 2 * W).all() and clone._model is predictor._model
    assert [o.type for o in predictor._model.program.global_block().ops] == ["feed", "plus", "fetch"]
    assert predictor._parameters.local_var_names() == ["v.ir_0"], "w is needed no more"


def test_without_ir_optim_the_program_runs_as_it_is(model: Path) -> None:
    config = oprack.inference.Config(str(model))
    config.switch_ir_optim(False)
    predictor = oprack.inference.create_predictor(config)
    assert (predictor.run([X])[0] == X + 2 * W).all()
    assert [o.type for o in predictor._model.program.global_block().ops] == ["feed", "plus", "copy", "plus", "fetch"]


def test_a_config_chooses_the_passes(model: Path) -> None:
    config = oprack.inference.Config(str(model))
    assert config.pass_builder().all_passes() == [*GENERIC, "strict", "loose"]
    config.switch_strict_sums()
    assert config.strict_sums() and config.pass_builder().all_passes() == [*GENERIC, "strict"]
    assert "strict_sums" in config.summary()
    config.delete_pass("fold_constants")
    predictor = oprack.inference.create_predictor(config)
    assert (predictor.run([X])[0] == X + 2 * W).all()
    assert [o.type for o in predictor._model.program.global_block().ops] == ["feed", "plus", "plus", "fetch"]
    config.pass_builder().append_pass("fold_constants")
    assert config.pass_builder().all_passes()[-1] == "fold_constants"
    predictor = oprack.inference.create_predictor(config)
    assert [o.type for o in predictor._model.program.global_block().ops] == ["feed", "plus", "fetch"]


@pytest.mark.parametrize("how", ["switch_ir_debug", "turn_on_debug"])
def test_a_config_asks_for_verification(packs: Callable[..., PackManager], tmp_path: Path, how: str) -> None:
    packs(bad=lambda register: register.pass_("bad", f"{HERE}:breaks", stage="fuse"))
    program, scope = PassCase({"x": X}, {"w": W}, [op("plus", "x", "y", "w")]).build()
    save_inference_model(tmp_path / "m", program, ["x"], ["y"], scope)
    config = oprack.inference.Config(str(tmp_path))
    config.switch_ir_debug() if how == "switch_ir_debug" else config.pass_builder().turn_on_debug()
    assert config.ir_debug()
    with pytest.raises(GraphError, match="pass bad of oprack-bad"):
        oprack.inference.create_predictor(config)
