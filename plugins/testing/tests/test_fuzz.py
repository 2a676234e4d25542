"""The fuzzer finds what is planted: in a kernel, in a kernel library, in a pass; and lets what is right alone."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import LoDTensor, Program, SelectedRows
from oprack.errors import InvalidArgumentError
from oprack.kernel import kernel
from oprack.op import Attr, Input, OpDef, Output
from oprack.packs.manager import PackManager
from oprack.testing import OpCase
from oprack.testing.fuzz import Checker, Example, Known, load_all, op_examples, read_known, save, script, search, seeds
from oprack.testing.fuzz.examples.example import LAYOUTS, laid_out
from oprack.testing.fuzz.examples.reuse import reuse_names
from oprack.testing.fuzz.isolated import isolated
from oprack.testing.fuzz.reduce import reduced
from oprack.testing.fuzz.runs.outcome import REORDERED, ROUNDED, SAME, compared


class Shifted(OpDef, type="shifted"):
    """Out = X + by * B."""

    X = Input("Any tensor.")
    B = Input("As many as the last dim of X.")
    Out = Output("As X.")
    by = Attr(1.0, "Factor.")

    def infer_shape(ctx) -> None:
        x, b = ctx.dim("X"), ctx.dim("B")
        ctx.require((len(x) > 0 and len(b) == 1 and -1 in (x[-1], b[0])) or x[-1:] == b, "B does not fit X")
        ctx.set_dim("Out", x)


@kernel("shifted", dtypes={"float32", "float64"})
def shifted(X, B, *, by):
    return X + X.dtype.type(by) * B.astype(X.dtype)


class _Library:
    """A kernel library that is there."""

    def status(self) -> str:
        return "serves"

    def limit_threads(self, count: int) -> Any:
        return contextlib.nullcontext()


LIBRARY = _Library()
RECORD = OpCase("shifted", {"X": np.ones((2, 3), "f4"), "B": np.arange(3, dtype="f4")}, {"by": 2.0})


def planted(manager: PackManager, function: Any, min_numel: int = 1 << 20) -> Checker:
    """A checker with the op, its kernel, and `function` as the kernel of a library for large tensors."""
    manager.register_op(Shifted)
    manager.register_kernel(shifted)
    manager.here.register._target("library", "fast", f"{__name__}:LIBRARY")
    declared = kernel("shifted", dtypes={"float32"}, library="fast", priority=5, min_numel=min_numel)
    manager.register_kernel(declared(function))
    manager.libraries = lambda: {"fast": LIBRARY}  # type: ignore[method-assign]
    return Checker(manager, only=["fast*"])


def found_in(manager: PackManager, function: Any, seed: int = 0, **options: Any) -> Any:
    checker = planted(manager, function)
    calls = seeds("shifted", (), [RECORD], manager=manager)
    return search(op_examples(calls, manager), checker, seed=seed, examples=250, **options)


def right(X, B, *, by):
    return X + np.float32(by) * B.astype(np.float32)


def test_equal_kernels_are_left_alone(pack_manager: PackManager) -> None:
    assert found_in(pack_manager, right) is None


def loses_nan(X, B, *, by):
    return np.nan_to_num(right(X, B, by=by), nan=0.0, posinf=np.inf, neginf=-np.inf)


def wrong_when_empty(X, B, *, by):
    return right(X, B, by=by) if X.shape[0] != 5 else np.zeros_like(X)


def forgets_the_attribute(X, B, *, by):
    return right(X, B, by=2.0)


def narrow(X, B, *, by):
    return right(X, B, by=by).astype(np.float64)


def refuses(X, B, *, by):
    if X.ndim != 2:
        raise InvalidArgumentError("two dims only")
    return right(X, B, by=by)


@pytest.mark.parametrize(
    "function, kind",
    [
        (loses_nan, "nan"),
        (wrong_when_empty, "value"),
        (forgets_the_attribute, "value"),
        (narrow, "refused"),  # the reference path holds results to what the rule says
        (refuses, "refused"),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_a_wrong_kernel_of_a_library_is_found(pack_manager: PackManager, function: Any, kind: str, seed: int) -> None:
    found = found_in(pack_manager, function, seed, shrink_seconds=1)
    assert found is not None and found.difference.kind == kind
    assert found.difference.path == "fast unlimited"
    assert found.example.op_types == ("shifted",) and len(found.example.runs) == 1


def test_a_known_difference_is_not_reported(pack_manager: PackManager) -> None:
    known = [Known("*", "nan", frozenset({"shifted"}), reason="as it is")]
    assert found_in(pack_manager, loses_nan, known=known) is None


def test_known_differences_are_read(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text('[[known]]\nops = ["a", "b"]\nkind = "nan"\nreason = "why"\n')
    (known,) = read_known(file)
    assert known == Known("*", "nan", frozenset({"a", "b"}), reason="why")


def test_the_script_shows_the_difference(pack_manager: PackManager) -> None:
    found = found_in(pack_manager, loses_nan, shrink_seconds=1)
    out = io.StringIO()
    checker = Checker(pack_manager)
    source = script(found.example, found.difference)
    with contextlib.redirect_stdout(out):
        exec(
            source.replace("from oprack.testing.fuzz import Checker, Example", ""),
            {
                "Checker": lambda only: checker,
                "Example": Example,
            },
        )
    assert "fast unlimited: nan (run 1" in out.getvalue()


def test_examples_are_kept_as_files(tmp_path: Path) -> None:
    program = Program()
    program.global_block().create_var("x", dtype="float32", shape=[-1, 2], lod_level=1)
    x = LoDTensor(np.array([[1.0, np.nan]], "f4"), [[0, 0, 1]])
    rows = SelectedRows([2, 0], np.ones((2, 3)), 4)
    save(Example(program, {"r": rows}, [{"x": x}], ["x"], {"x": "strided"}, label="net a"), tmp_path / "a.npz")
    ((name, back),) = load_all(tmp_path)
    assert (name, back.label, back.fetch, back.layouts) == ("a", "net a", ["x"], {"x": "strided"})
    assert str(back.program) == str(program)
    assert back.runs[0]["x"].lod == x.lod and np.array_equal(back.runs[0]["x"].array, x.array, equal_nan=True)
    assert list(back.params["r"].rows) == [2, 0] and back.params["r"].height == 4


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_holds_the_same_numbers(layout: str) -> None:
    floats = np.arange(6, dtype="f4").reshape(2, 3)
    for array in (floats, np.ones((2, 3), "i8"), np.ones((0, 3)), np.float32(2).reshape(())):
        assert np.array_equal(laid_out(LoDTensor(array), layout), array)


def abort(X, B, *, by):
    if X.shape[0] == 5:
        os.abort()
    return right(X, B, by=by)


def test_a_crash_is_a_difference(pack_manager: PackManager) -> None:
    checker = planted(pack_manager, abort)
    calls = seeds("shifted", (), [RECORD], manager=pack_manager)
    check = isolated(checker, hang=30)
    found = search(op_examples(calls, pack_manager), checker, seed=0, examples=100, check=check, shrink_seconds=1)
    assert found is not None and found.difference.kind == "crash" and found.difference.text == "SIGABRT"
    assert found.difference.path == "fast unlimited"


@dataclass
class _Case:
    want: Any
    got: Any
    moved: Any = None
    exact: Any = None

    def kind(self, tolerance: Any) -> str:
        tensors = [{"y": LoDTensor(np.asarray(v))} for v in (self.want, self.got)]
        moved = [{"y": LoDTensor(np.asarray(self.moved))}] if self.moved is not None else []
        exact = {"y": LoDTensor(np.asarray(self.exact))} if self.exact is not None else None
        found = compared(*tensors, tolerance, moved, exact)
        return found[1] if found else ""


F = np.float32
BIG = F([1.0, 100.0])


def test_tolerances() -> None:
    assert _Case(F([1.0, np.nan, 0.0]), F([1.0, np.nan, -0.0])).kind(SAME) == ""
    assert _Case(F([1.0]), np.nextafter(F([1.0]), F(2))).kind(SAME) == "value"
    assert _Case(BIG, BIG + F([1e-3, 0])).kind(ROUNDED) == ""  # relative to the largest magnitude
    assert _Case(BIG, BIG + F([1e-2, 0])).kind(ROUNDED) == "value"
    assert _Case(BIG, BIG + F([1e-2, 0])).kind(REORDERED) == ""
    assert _Case(F([1.0]), F([np.nan])).kind(REORDERED) == "nan"
    assert _Case(F([np.inf]), F([1.0])).kind(REORDERED) == "nan"
    assert _Case(F([1.0]), np.float64([1.0])).kind(REORDERED) == "dtype"
    assert _Case(F([1.0]), F([[1.0]])).kind(REORDERED) == "shape"
    assert _Case(F([1e-40]), F([0.0])).kind(ROUNDED) == ""  # flushed
    assert _Case(F([3e38]), F([np.inf])).kind(ROUNDED) == ""  # a sum may overflow on its way
    large = np.complex128([1.5e308 + 1.5e308j, 1])  # its absolute value overflows
    assert _Case(large, large).kind(SAME) == ""
    assert _Case(large, large * [1, 2]).kind(SAME) == "value"
    assert _Case(np.int64([3, 4]), np.int64([3, 5])).kind(REORDERED) == "value"


def test_rows_outside_of_the_matrix_are_compared_as_they_are() -> None:
    def rows(*numbers: int) -> dict[str, Any]:
        return {"y": SelectedRows(numbers, np.ones((len(numbers), 2), "f4"), 2, check=False)}

    assert compared(rows(0, 1), rows(1, 0), ROUNDED) is None  # the same matrix
    assert compared(rows(0, 2), rows(0, 2), ROUNDED) is None
    assert compared(rows(0, 2), rows(0, 3), ROUNDED)[1] == "value"


def test_what_the_reference_itself_can_not_tell_is_not_compared() -> None:
    assert _Case(np.int64([3]), np.int64([4]), moved=np.int64([4])).kind(ROUNDED) == ""
    assert _Case(np.int64([3]), np.int64([4]), moved=np.int64([3])).kind(ROUNDED) == "value"
    assert _Case(F([1.0]), F([1.1]), moved=F([1.01])).kind(ROUNDED) == ""
    assert _Case(F([1.0]), F([1.1]), moved=F([1.001])).kind(ROUNDED) == "value"
    assert _Case(F([1e-7]), F([3e-7]), exact=np.float64([0.0])).kind(ROUNDED) == ""
    assert _Case(F([1e-7]), F([3e-7]), exact=np.float64([1e-7])).kind(ROUNDED) == "value"


def chain(pack_manager: PackManager, length: int) -> Example:
    """x shifted again and again."""
    program = Program()
    block = program.global_block()
    for i in range(length + 1):
        block.create_var(f"v{i}", dtype="float32", shape=[-1, 3])
    block.create_var("b", dtype="float32", shape=[3], persistable=True)
    for i in range(length):
        block.append_op("shifted", {"X": f"v{i}", "B": "b"}, {"Out": f"v{i + 1}"}, {"by": 3.0 if i == 2 else 1.0})
    b, x = LoDTensor(np.ones(3, "f4")), LoDTensor(np.ones((2, 3), "f4"))
    return Example(program, {"b": b}, [{"v0": x}, {"v0": x}], [f"v{length}"])


def test_a_program_is_reduced_to_the_op_that_differs(pack_manager: PackManager) -> None:
    checker = planted(pack_manager, right)

    def fails(example: Example) -> bool:
        return any(op.attrs["by"] == 3.0 for op in example.program.global_block().ops)

    small = reduced(chain(pack_manager, 6), "", fails, checker.reference, 20)
    (op,) = small.program.global_block().ops
    assert op.attrs["by"] == 3.0 and len(small.runs) == 1
    assert checker.reference(small)[0].values[small.fetch[0]].array[0, 0] == 6.0  # 1 + 1 + 1, and 3 more


def test_names_used_again_change_no_number(pack_manager: PackManager) -> None:
    checker = planted(pack_manager, right)
    example = chain(pack_manager, 6)
    (before, _) = checker.reference(example)
    reuse_names(example.program, {"v6"}, lambda *names: names[-1])
    assert len(example.program.global_block().vars) < 8
    (after, _) = checker.reference(example)
    assert np.array_equal(after.values["v6"].array, before.values["v6"].array)
