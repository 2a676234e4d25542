"""Patterns and the driver of fusions: what matches, what the guard forbids, what takes the place of a match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ir_ops
import numpy as np
import pytest
from oprack.desc import ProgramDesc
from oprack.errors import DefinitionError
from oprack.ir import Fusion, Graph, fusion, verify
from oprack.packs.manager import PackManager
from oprack.runtime import Executor
from oprack.testing import PassCase

X = np.array([1.0, 2.0])
W = np.array([3.0, 5.0])
V = np.array([7.0, 11.0])


@pytest.fixture(autouse=True)
def more_ops(rack: PackManager) -> Iterator[None]:
    ir_ops.register(rack)
    yield


def op(kind: str, x: str, out: str, y: str | None = None, **attrs: Any) -> tuple[Any, ...]:
    return kind, {"X": x} if y is None else {"X": x, "Y": y}, {"Out": out}, attrs


def apply(row: Any, ops: list[tuple[Any, ...]], fetch: list[str], params: dict[str, Any] | None = None) -> list[str]:
    """Types of the ops that a fusion leaves; the numbers are the same, and the graph is sound after it."""
    case = PassCase({"x": X}, {"w": W, "v": V} if params is None else params, ops, fetch)
    program, scope = case.build()
    graph = Graph(program.desc, scope=scope, keep=fetch)
    facts = verify(graph)
    count = row(graph)
    verify(graph, facts)
    after: ProgramDesc = graph.to_program()
    plain = Executor().run(program, {"x": X}, fetch, case.build()[1])
    for want, got in zip(plain, Executor().run(after, {"x": X}, fetch, scope), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    types = [o.type for o in after.blocks[0].ops]
    assert (count == 0) == (types == [o.type for o in program.desc.blocks[0].ops])
    return types


@fusion("fold_double")
def fold_double(p: Any) -> Any:
    """double(x) * w -> x * (w factor)"""
    doubled = p.op("double", X="x")
    root = p.op("times", X=doubled, Y=p.param("w"), attrs={"by": 1.0})
    return root, lambda m: m.op("times", X=m["x"], Y=m.new_param(m.value("w") * m.attr(doubled, "factor"), like="w"))


def test_a_match_is_replaced() -> None:
    ops = [op("double", "x", "y", factor=4.0), op("times", "y", "z", "w"), op("double", "z", "u")]
    assert apply(fold_double, ops, ["u"]) == ["times", "double"]
    assert fold_double.__doc__ and repr(fold_double).startswith(f"<Fusion fold_double at {__file__}:")


def test_matches_are_found_until_there_are_none() -> None:
    ops = [op("double", "x", "a"), op("times", "a", "b", "w"), op("double", "b", "c"), op("times", "c", "z", "v")]
    assert apply(fold_double, ops, ["z"]) == ["times", "times"]


def test_a_shared_parameter_stays_for_others() -> None:
    ops = [op("double", "x", "y"), op("times", "y", "z", "w"), op("plus", "z", "u", "w")]
    assert apply(fold_double, ops, ["u"]) == ["times", "plus"]


FIRST, THEN = op("double", "x", "y"), op("times", "y", "z", "w")
WITH_Z: tuple[Any, ...] = ("times", {"X": "y", "Y": "w", "Z": "v"}, {"Out": "z"})


@pytest.mark.parametrize(
    "why,ops,fetch",
    [
        ("another op reads it", [FIRST, THEN, op("plus", "z", "u", "y")], ["u"]),
        ("it is fetched", [FIRST, THEN], ["y", "z"]),
        ("an attribute differs", [FIRST, op("times", "y", "z", "w", by=2.0)], ["z"]),
        ("the slot holds no parameter", [FIRST, op("times", "y", "z", "x")], ["z"]),
        ("the parameter is written", [FIRST, THEN, op("copy", "x", "w")], ["z"]),
        ("another slot is given", [FIRST, WITH_Z], ["z"]),
        ("x is overwritten in between", [FIRST, op("copy", "w", "x"), THEN], ["z"]),
    ],
)
def test_what_does_not_match(why: str, ops: list[tuple[Any, ...]], fetch: list[str]) -> None:
    assert apply(fold_double, ops, fetch) == [o[0] for o in ops], why


def test_persistable_and_pinned_intermediates_stay() -> None:
    ops = [op("double", "x", "y"), op("times", "y", "z", "w")]
    program, scope = PassCase({"x": X}, {"w": W}, ops).build()
    block = program.desc.blocks[0]
    block.vars["y"].persistable = True
    assert fold_double(Graph(program.desc, scope=scope)) == 0
    block.vars["y"].persistable = False
    program.desc.append_block(block).append_op("double", {"X": "y"}, {"Out": "q"})
    assert fold_double(Graph(program.desc, scope=scope)) == 0


# Parts of patterns ----------------------------------------------------------------------------------------------------
def commuting(p: Any) -> Any:
    root = p.op("plus", X=p.op("double", X="x"), Y=p.param("w"), commutative=True)
    return root, lambda m: m.op("plus", X=m.op("double", X=m["x"]), Y=m.new_param(m.value("w"), like="w"))


@pytest.mark.parametrize("x,y", [("y", "w"), ("w", "y")])
def test_commutative_inputs(x: str, y: str) -> None:
    row = Fusion("commuting", commuting)
    graph = Graph(PassCase({"x": X}, {"w": W}, [op("double", "x", "y"), op("plus", x, "z", y)]).build()[0].desc)
    assert row.apply_once(graph) == 0, "without a scope no parameter is known"
    program, scope = PassCase({"x": X}, {"w": W}, [op("double", "x", "y"), op("plus", x, "z", y)]).build()
    assert row.apply_once(Graph(program.desc, scope=scope, keep=["z"])) == 1


def with_maybe(p: Any) -> Any:
    inner = p.op("double", X="x")
    shifted = p.maybe(p.op("plus", X=inner, Y=p.param("w"), commutative=True))
    root = p.op("times", X=shifted, Y=p.param("v"))

    def build(m: Any) -> Any:
        v, factor = m.value("v"), m.attr(inner, "factor")
        out = m.op("times", X=m["x"], Y=m.new_param(v * factor, like="v"))
        if not m.has(shifted):
            return out
        assert m.op_of(shifted).type == "plus" and m.has("w")
        return m.op("plus", X=out, Y=m.new_param(m.value("w") * v, like="w"))

    return root, build


def test_an_op_may_be_left_out() -> None:
    row = Fusion("with_maybe", with_maybe)
    assert apply(row, [op("double", "x", "y"), op("times", "y", "z", "v")], ["z"]) == ["times"]
    ops = [op("double", "x", "y"), op("plus", "w", "s", "y"), op("times", "s", "z", "v")]
    assert apply(row, ops, ["z"]) == ["times", "plus"]


def test_alternatives_and_several_types() -> None:
    def row(p: Any) -> Any:
        inner = p.op("double", X="x")
        roots = p.op(("copy", "double"), X=inner), p.op("join", X=[inner])
        return p.either(*roots), lambda m: m.op("plus", X=m["x"], Y=m["x"]) if m.root.type != "double" else None

    either = Fusion("either", row)
    assert apply(either, [op("double", "x", "y"), op("copy", "y", "z")], ["z"]) == ["plus"]
    assert apply(either, [op("double", "x", "y"), ("join", {"X": ["y"]}, {"Out": "z"})], ["z"]) == ["plus"]
    assert apply(either, [op("double", "x", "y"), op("double", "y", "z")], ["z"]) == ["double", "double"]
    assert apply(either, [op("double", "x", "y"), ("join", {"X": ["y", "x"]}, {"Out": "z"})], ["z"]) == [
        "double",
        "join",
    ]


def test_one_name_is_one_variable() -> None:
    row = Fusion("square", lambda p: (p.op("plus", X="x", Y="x"), lambda m: m.op("double", X=m["x"])))
    assert apply(row, [op("plus", "x", "z", "x")], ["z"]) == ["double"]
    assert apply(row, [op("plus", "x", "z", "w")], ["z"]) == ["plus"]


def test_a_variable_may_take_the_place() -> None:
    """state(x + s) -> x, where s is given back unchanged; its readers read the parameter."""

    def row(p: Any) -> Any:
        root = p.op("state", X=p.op("plus", X="x", Y=p.param("s")), S=p.param("s"), unchanged=("SOut",))
        return root, lambda m: m["x"]

    ops = [
        op("double", "x", "d"),
        op("plus", "d", "y", "w"),
        ("state", {"X": "y", "S": "w"}, {"Out": "z", "SOut": "w"}),
        op("plus", "z", "u", "w"),
    ]
    assert apply(Fusion("undo", row), ops, ["u"]) == ["double", "plus"]
    assert apply(Fusion("undo", row), ops, ["z", "u"]) == ["double", "plus"], (
        "the kept name goes to what takes its place"
    )
    ops[0] = op("copy", "x", "q")
    ops[1] = op("plus", "x", "y", "w")
    kept = [o[0] for o in ops]
    assert apply(Fusion("undo", row), ops, ["z"]) == kept, "a feed can't be renamed"


def test_what_takes_the_place_may_read_an_op_of_the_match() -> None:
    """double(x) + w + v -> double(x) + (w + v): the first op stays, and what it alone reads."""

    def row(p: Any) -> Any:
        doubled = p.op("double", X="x")
        root = p.op("plus", X=p.op("plus", X=doubled, Y=p.param("w")), Y=p.param("v"))

        def build(m: Any) -> Any:
            kept = m.op_of(doubled).output("Out")
            total = m.value("w") + m.value("v")
            return m.op("plus", X=kept, Y=m.new_param(total, like="w")) if total.any() else kept

        return root, build

    ops = [op("copy", "x", "c"), op("double", "c", "d"), op("plus", "d", "s", "w"), op("plus", "s", "z", "v")]
    assert apply(Fusion("join_terms", row), ops, ["z"]) == ["copy", "double", "plus"]
    undone = {"w": W, "v": -W}
    assert apply(Fusion("join_terms", row), [*ops, op("copy", "z", "u")], ["u"], undone) == ["copy", "double", "copy"]
    assert apply(Fusion("join_terms", row), ops, ["z"], undone) == ["copy", "double"], "under the name that is kept"


def test_several_outputs() -> None:
    def row(p: Any) -> Any:
        root = p.op("copy", X=p.op("double", X="x"))

        def build(m: Any) -> Any:
            doubled = m.op("plus", X=m["x"], Y=m["x"])
            return {"Out": doubled, "Also": m.op("copy", X=doubled, out="Also")}

        return root, build

    ops = [op("double", "x", "y"), ("copy", {"X": "y"}, {"Out": "a", "Also": "b"}), op("plus", "a", "z", "b")]
    assert apply(Fusion("both", row), ops, ["z", "b"]) == ["plus", "copy", "plus"]
    one = Fusion("one", lambda p: (p.op("copy", X=p.op("double", X="x")), lambda m: m.op("plus", X=m["x"], Y=m["x"])))
    assert apply(one, ops, ["z"]) == [o[0] for o in ops], "the other output is read"
    assert apply(one, ops[:2], ["a"]) == ["plus"]


def test_new_ops_keep_the_notes_of_the_root() -> None:
    ops = [op("double", "x", "y"), op("times", "y", "z", "w", op_callstack=['File "model.py", line 3', "z = y * w"])]
    program, scope = PassCase({"x": X}, {"w": W}, ops).build()
    graph = Graph(program.desc, scope=scope, keep=["z"])
    assert fold_double(graph) == 1
    assert graph.ops[0].attr("op_callstack") == ['File "model.py", line 3', "z = y * w"]


def test_fusions_are_added() -> None:
    undo = Fusion("undo", lambda p: (p.op("plus", X="x", Y="x"), lambda m: m.op("double", X=m["x"])))
    both = undo + fold_double
    ops = [op("plus", "x", "y", "x"), op("times", "y", "z", "w")]
    assert apply(both, ops, ["z"]) == ["times"] and apply(fold_double + undo, ops, ["z"]) == ["times"]
    assert repr(both + both) == "<Fusions undo + fold_double + undo + fold_double>"


# Mistakes in rows -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "row,message",
    [
        (lambda p: (p.op("plus", X=3, Y="y"), None), r"pattern at .*driver.py:\d+: 3 is no pattern; expected a name"),
        (lambda p: (p.op("plus", X="x", commutative=True), None), "a commutative op has slots X and Y; got X"),
        (lambda p: (p.maybe(p.op("copy", X=p.param("w"))), None), "nothing to fall back to; name a slot"),
        (lambda p: (p.param("w"), None), r"fusion 'row': the pattern ends in .*; expected p.op\(...\) or p.either"),
    ],
)  # fmt: skip
def test_a_pattern_that_makes_no_sense(row: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Fusion("row", row)


@pytest.mark.parametrize(
    "build,message",
    [
        (lambda m: 3, r"fusion 'row' \(.*\) gave 3 for output Out of <OpNode z = double"),
        (lambda m: {"Nothing": m["x"]}, "for output Nothing"),
        (lambda m: m["y"], "the pattern bound no variable 'y'; it has x"),
        (lambda m: m.new_param(W, like="x"), r"new_param\(like='x'\): the pattern bound no parameter"),
        (lambda m: m.op_of(m), "the pattern found no such op"),
    ],
)
def test_a_build_that_makes_no_sense(build: Any, message: str) -> None:
    row = Fusion("row", lambda p: (p.op("double", X="x"), build))
    graph = Graph(PassCase({"x": X}, {}, [op("double", "x", "z")]).build()[0].desc)
    with pytest.raises(DefinitionError, match=message):
        row(graph)


@fusion("sum_of_doubled")
def sum_of_doubled(p: Any) -> Any:
    """double(x) + y -> times(x + y): any y that the match does not take away"""
    doubled = p.op("double", X="x")
    root = p.op("plus", X=doubled, Y="y", commutative=True)
    return root, lambda m: m.op("plus", X=m["x"], Y=m.op("plus", X=m["x"], Y=m["y"]))


def test_an_operand_that_the_match_takes_away_is_no_match() -> None:
    assert apply(sum_of_doubled, [op("double", "x", "y"), op("plus", "y", "z", "y")], ["z"]) == ["double", "plus"]
    assert apply(sum_of_doubled, [op("double", "x", "y"), op("plus", "y", "z", "x")], ["z"]) == ["plus", "plus"]


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_operands_of_several_dtypes_are_no_match(dtype: str) -> None:
    ops = [op("double", "x", "y"), op("times", "y", "z", "w")]
    program, scope = PassCase({"x": X}, {"w": W.astype(dtype)}, ops).build()
    assert fold_double(Graph(program.desc, scope=scope, keep=["z"])) == 0
