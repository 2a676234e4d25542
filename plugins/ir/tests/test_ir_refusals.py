"""What passes write and what they meet: wrong ops are refused by name, and a bad model accuses no pack."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ir_ops
import numpy as np
import pack_site
import pytest
from joined import PARTS
from oprack.desc import ProgramDesc
from oprack.errors import GraphError
from oprack.ir import Graph, ModelWarning, fusion, optimize
from oprack.ir.survey import survey_passes
from oprack.packs.manager import PackManager, use_manager
from oprack.packs.pack import BrokenPackWarning
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import Scope
from oprack.testing import PassCase
from oprack.types import EMPTY_VAR

X = np.array([1.0, 2.0])
W = np.array([3.0, 5.0])
HERE = __name__


def writes(name: str, type: str, out: str | None = None, attrs: Any = None, **slots: str) -> Any:
    """A fusion that puts one op in place of twice."""

    @fusion(name)
    def row(p: Any) -> Any:
        root = p.op("twice", X="x")
        return root, lambda m: m.op(type, out=out, attrs=attrs, **{slot: m["x"] for slot in slots})

    return row


wrong_input = writes("wrong_input", "plus", X="x", YY="x")
wrong_output = writes("wrong_output", "copy", out="Alto", X="x")
wrong_attr = writes("wrong_attr", "times", X="x", Y="x", attrs={"bye": 2.0})
wrong_value = writes("wrong_value", "times", X="x", Y="x", attrs={"by": "two"})
wrong_type = writes("wrong_type", "plsu", X="x")
lacking = writes("lacking", "plus", X="x")
good = writes("good", "plus", X="x", Y="x")


@fusion("no_variable")
def no_variable(p: Any) -> Any:
    return p.op("twice", X="x"), lambda m: m.op("copy", X="x")


def by_hand(graph: Graph) -> int:
    first = graph.ops[0]
    out = graph.new_var("y")
    graph.add_op("twice", {"X": first.inputs["X"]}, {"Oot": [out]}, before=first)
    return 1


def changes_the_second(graph: Graph) -> int:
    """Adds a parameter in block 0, and fails in block 1."""
    if graph.block.idx:
        raise ValueError("not this one")
    graph.new_parameter(W, "w")
    return 1


@pytest.fixture
def packs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PackManager]]:
    used = []

    def make(**hooks: Callable[[Any], None]) -> PackManager:
        used.append(use_manager(ir_ops.manager_with_passes(monkeypatch, **hooks)))
        return used[-1].__enter__()

    yield make
    for context in reversed(used):
        context.__exit__(None, None, None)


def op(kind: str, x: str, out: str, y: str | None = None, **attrs: Any) -> tuple[Any, ...]:
    return kind, {"X": x} if y is None else {"X": x, "Y": y}, {"Out": out}, attrs


def types(program: ProgramDesc) -> list[str]:
    return [o.type for o in program.blocks[0].ops]


@pytest.mark.parametrize(
    "target,reason",
    [
        ("wrong_input", r"new op plus has input YY \(did you mean Y\?\); the op has X, Y"),
        (
            "wrong_output",
            r"m.op\('copy', out='Alto'\): the op has no such output \(did you mean Also\?\); it has Out, Also",
        ),
        ("wrong_attr", r"new op times has attribute bye \(did you mean by\?\); the op has by"),
        ("wrong_value", "by.*'two'"),
        ("wrong_type", r"op 'plsu' is unknown: .*did you mean plus"),
        ("lacking", "new op plus lacks input Y, which the op needs"),
        ("no_variable", r"m.op\('copy', X='x'\): expected m\[...\]"),
        ("by_hand", r"new op twice has output Oot \(did you mean Out\?\); the op has Out"),
    ],
)
def test_a_pass_that_writes_a_wrong_op_is_left_out_and_the_others_go_on(
    packs: Callable[..., PackManager], target: str, reason: str
) -> None:
    def both(register: Any) -> None:
        register.pass_("bad", f"{HERE}:{target}", stage="fuse", before=["good"])
        register.pass_("good", f"{HERE}:good", stage="fuse")

    packs(third=both)
    program, scope = PassCase({"x": X}, {}, [op("twice", "x", "y")], ["y"]).build()
    with pytest.warns(BrokenPackWarning, match=f"pass bad of oprack-third is left out: .*{reason}"):
        done = optimize(program.desc, scope, keep=["y"])
    assert types(done.program) == ["plus"]
    (y,) = Executor().run(done.program, {"x": X}, ["y"], scope)
    np.testing.assert_array_equal(y, 2 * X)
    if reason.startswith("new op"):
        with pytest.raises(GraphError, match=f"pass bad of oprack-third: {reason}"):
            optimize(program.desc, scope, keep=["y"], debug=True)


def test_what_a_pass_added_in_an_earlier_block_goes_with_it(packs: Callable[..., PackManager]) -> None:
    packs(third=lambda register: register.pass_("bad", f"{HERE}:changes_the_second", stage="fuse"))
    program, scope = PassCase({"x": X}, {"w": W}, [op("plus", "x", "y", "w")], ["y"]).build()
    program.desc.append_block(program.desc.blocks[0])
    with pytest.warns(BrokenPackWarning, match="pass bad of oprack-third is left out: ValueError: not this one"):
        optimize(program.desc, scope, keep=["y"])
    assert scope.local_var_names() == ["w"]


# Models that are wrong ------------------------------------------------------------------------------------------------
def model(*ops: tuple[Any, ...], **shapes: list[int]) -> tuple[Program, Scope]:
    program = Program()
    block = program.global_block()
    for name, shape in shapes.items():
        block.create_var(name, dtype="float64", shape=shape)
    for kind, inputs, outputs in ops:
        block.append_op(kind, inputs, outputs)
    return program, Scope()


GOOD = ("twice", {"X": ["x"]}, {"Out": ["y"]})


@pytest.mark.parametrize(
    "bad",
    [
        ("plus", {"X": ["y"], "Y": [EMPTY_VAR]}, {"Out": ["z"]}),
        ("plus", {"X": ["y"]}, {"Out": ["z"]}),
        ("twice", {"X": ["nobody"]}, {"Out": ["z"]}),
        ("twice", {"X": ["y", "y"]}, {"Out": ["z"]}),
        ("twice", {"Q": ["y"]}, {"Out": ["z"]}),
        ("twice", {"X": ["y"]}, {"Out": [EMPTY_VAR]}),
    ],
)
def test_a_malformed_op_of_a_model_stays_as_it_is_and_accuses_nobody(
    packs: Callable[..., PackManager], bad: tuple[Any, ...]
) -> None:
    def hook(register: Any) -> None:
        register.pass_("good", f"{HERE}:good", stage="fuse")

    packs(third=hook)
    # z is written twice, so that name_every_write looks at it as well
    program, scope = model(GOOD, bad, ("twice", {"X": ["y"]}, {"Out": ["z"]}), x=[2], y=[2], z=[2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = optimize(program.desc, scope, keep=["y", "z"])
    assert not any(report.error for report in done.reports)
    assert "plus" in types(done.program), "ops beside it are rewritten"
    if bad[2] != {"Out": [EMPTY_VAR]}:
        assert types(done.program)[1] == bad[0]


def needs_shape(graph: Graph) -> int:
    for o in graph.ops:
        if o.type == "grow":
            return int(o.inputs["X"][0].shape[0] > 99)  # type: ignore[index,union-attr]
    return 0


def test_a_program_that_contradicts_itself_is_named_instead_of_the_pack(packs: Callable[..., PackManager]) -> None:
    packs(third=lambda register: register.pass_("needs_shape", f"{HERE}:needs_shape", stage="fuse"))
    program, scope = model(GOOD, ("grow", {"X": ["s"]}, {"Out": ["z"]}), x=[2], y=[2], s=[], z=[4])
    with pytest.warns(ModelWarning, match=r"(?s)contradicts itself.*grow.*needs_shape of oprack-third is left out"):
        optimize(program.desc, scope, keep=["y", "z"])


def test_a_name_reused_with_other_dims_keeps_the_rest_of_name_every_write(packs: Callable[..., PackManager]) -> None:
    """Two names are written twice; the shapes of one can't be inferred."""
    packs()
    program, scope = model(
        ("grow", {"X": ["s"]}, {"Out": ["a"]}), ("twice", {"X": ["a"]}, {"Out": ["a"]}),
        ("twice", {"X": ["x"]}, {"Out": ["b"]}), ("twice", {"X": ["b"]}, {"Out": ["b"]}),
        ("plus", {"X": ["a"], "Y": ["b"]}, {"Out": ["z"]}), s=[], x=[2], a=[4], b=[2], z=[2],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = optimize(program.desc, scope, keep=["z"])
    outs = [o.output("Out")[0] for o in done.program.blocks[0].ops]
    assert len(outs) == len(set(outs)) == 5


# The survey -----------------------------------------------------------------------------------------------------------


def test_the_survey_finds_what_can_never_match(
    packs: Callable[..., PackManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {
        "type_": fusion("type_")(lambda p: (p.op("twicee", X="x"), lambda m: None)),
        "slot": fusion("slot")(lambda p: (p.op("plus", X="x", YY=p.op("twice", X="y")), lambda m: None)),
        "inner": fusion("inner")(lambda p: (p.op("copy", X=p.maybe(p.op("twice", XX="y"))), lambda m: None)),
        "lacks": fusion("lacks")(lambda p: (p.op("plus", X="x"), lambda m: None)),
        "attr": fusion("attr")(lambda p: (p.op("times", X="x", Y="y", attrs={"buy": 1.0}), lambda m: None)),
        "unchanged": fusion("unchanged")(lambda p: (p.op("state", X="x", S="s", unchanged=["Sout"]), lambda m: None)),
        "elsewhere": fusion("elsewhere")(lambda p: (p.op("fancy_attention", X="x"), lambda m: None)),
    }
    for name, row in rows.items():
        monkeypatch.setattr(f"{HERE}.{name}", row, raising=False)

    def hook(register: Any) -> None:
        for name in rows:
            register.pass_(f"p_{name}", f"{HERE}:{name}", stage="fuse")
        register.pass_("p_gone", f"{HERE}_gone:f", stage="fuse")
        register.pass_("p_none", f"{HERE}:nothing_here", stage="fuse")
        register.pass_("p_text", f"{HERE}:HERE", stage="fuse")
        register.pass_("p_stage", f"{HERE}:good", stage="fuse", after=["remove_dead_code"])
        register.pass_("p_after", f"{HERE}:good", stage="fuse", after=["remove_dead_cod"], before=["zzz"])

    found = survey_passes(packs(third=hook))
    text = "\n".join(found.problems)
    for name, words in {
        "p_type_": "no installed op is 'twicee' (did you mean twice?)",
        "p_slot": "op plus has no input 'YY' (did you mean Y?); it has X, Y",
        "p_inner": "op twice has no input 'XX' (did you mean X?)",
        "p_lacks": "op plus needs input 'Y', which the pattern does not name",
        "p_attr": "op times has no attribute 'buy' (did you mean by?)",
        "p_unchanged": "op state has no output 'Sout' (did you mean SOut",
        "p_gone": "No module named",
        "p_none": "names nothing",
        "p_text": "expected a function or a fusion",
        "p_stage": "after='remove_dead_code' names a pass of stage 'fold', but it is of stage 'fuse'",
        "p_after": "after='remove_dead_cod' names no installed pass (did you mean remove_dead_code?)",
    }.items():
        assert any(f"pass {name} of oprack-third" in p and words in p for p in found.problems), (name, text)
    assert "ops.toml" not in text, "a pass is in no manifest"
    assert len(found.notes) == 2 and "'fancy_attention'" in "".join(found.notes) and "'zzz'" in "".join(found.notes)


def test_the_survey_is_content_with_sound_passes(packs: Callable[..., PackManager]) -> None:
    found = survey_passes(packs(third=lambda register: register.pass_("good", f"{HERE}:good", stage="fuse")))
    assert (found.problems, found.notes) == ([], [])


LOST = """
from oprack import hookimpl

@hookimpl
def oprack_passes(register):
    register.pass_("lost", "fixture_lost:nothing", stage="fuse")
"""


def test_doctor_says_what_is_wrong_with_passes(tmp_path: Path) -> None:
    site = pack_site.install(tmp_path / "site", "good")
    (site / "fixture_lost.py").write_text(LOST)
    pack_site.write_metadata(site, "oprack-lost", "1.0", {"lost": "fixture_lost"})
    env = pack_site.environment([site, pack_site.libraries(tmp_path / "libraries"), *(part.parent for part in PARTS)])
    done = pack_site.run_python("-m", "oprack", "doctor", "--imports", "--json", env=env)
    (problem,) = json.loads(done.stdout)["problems"]
    assert done.returncode == 1 and problem.startswith("pass lost of oprack-lost: 'fixture_lost:nothing' names nothing")
