"""oprack.python.records.dataclass: what the standard library's makes, asked in every way that a dataclass is used."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import subprocess
import sys
from dataclasses import field
from typing import ClassVar

import pytest
from oprack.python.records import dataclass

KINDS = [{}, {"eq": False}, {"frozen": True}, {"frozen": True, "eq": False}, {"frozen": True, "slots": True}]


def family(make, **options):
    """Classes of one shape by either function."""

    @make(**options)
    class Base:
        """Some fields."""

        kind: ClassVar[str] = "base"
        x: int
        y: list[int] = field(default_factory=list, hash=False)
        z: str = "z"
        note: str = field(default="n", compare=False, repr=False)
        count: int = field(default=3, init=False)
        named: int = field(default=5, kw_only=True)

        def __post_init__(self):
            if self.x < 0:
                raise ValueError("x")

    @make(**options)
    class Derived(Base):
        """One more."""

        w: float = 0.5

        def __repr__(self):
            return "derived"

    class Plain(Base):
        """Is no dataclass of its own."""

    return Base, Derived, Plain


def outcome(run):
    try:
        return run()
    except Exception as error:
        return type(error).__name__, str(error)


USES = {
    "defaults": lambda C, i: [getattr(C(1), f.name) for f in dataclasses.fields(C)],
    "arguments": lambda C, i: dataclasses.astuple(C(1, [2], z="q", named=9)),
    "missing": lambda C, i: "x" in str(outcome(lambda: C())),
    "too many": lambda C, i: outcome(lambda: C(1, [], "", "", 0.1, 2, 3))[0],
    "post init": lambda C, i: C(-1),
    "repr": lambda C, i: repr(C(1)).partition("(")[2],
    "equal": lambda C, i: (C(1) == C(1), C(1) == C(2), C(1) == 1, C(1, note="a") == C(1, note="b"), C(1) != C(2)),
    # All four live at a time: by identity, one that is gone may have the hash of the next.
    "hash": lambda C, i: outcome(lambda: len({hash(c) for c in [C(1), C(1), C(1, [2]), C(1, [3])]})),
    "hash again": lambda C, i: C.__hash__ is None or hash(i) == hash(i),
    "replace": lambda C, i: dataclasses.asdict(dataclasses.replace(i, x=7)),
    "set": lambda C, i: setattr(i, "x", 3),
    "delete": lambda C, i: outcome(lambda: delattr(i, "x")) and hasattr(i, "x"),
    "other": lambda C, i: setattr(i, "other", 3),
    "signature": lambda C, i: str(inspect.signature(C)).replace("'", ""),
    "match": lambda C, i: C.__match_args__,
    "copies": lambda C, i: dataclasses.astuple(copy.deepcopy(copy.copy(i))),
    "types": lambda C, i: [(f.name, f.type, f.kw_only) for f in dataclasses.fields(C)],
    "own": lambda C, i: (dataclasses.is_dataclass(C), i.kind, C.__init__.__qualname__.rpartition(".")[2]),
    "dict": lambda C, i: hasattr(i, "__dict__"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_it_is_the_dataclass_of_the_standard_library(options, use):
    if use == "other" and options.get("slots"):
        pytest.skip("its own __setattr__ fails with a TypeError about super() there")
    for expected, found in zip(family(dataclasses.dataclass, **options), family(dataclass, **options), strict=True):
        want = outcome(lambda: USES[use](expected, expected(1)))  # noqa: B023
        assert outcome(lambda: USES[use](found, found(1))) == want  # noqa: B023


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_classes_of_both_inherit_from_each_other(options):
    for first, second in ((dataclass, dataclasses.dataclass), (dataclasses.dataclass, dataclass)):
        Base, _, _ = family(first, **options)

        @second(**options)
        class Other(Base):
            """One more."""

            more: int = 8

        assert dataclasses.astuple(Other(1, more=2))[-1] == 2
        assert (Other(1) == Other(1)) is options.get("eq", True)
    if options.get("frozen"):
        with pytest.raises(TypeError, match="non-frozen"):
            dataclass(type("Thawed", (family(dataclasses.dataclass, **options)[0],), {"__annotations__": {}}))


ROWS = """
from oprack.python.records import dataclass

@dataclass(frozen=True, slots=True)
class Row:
    a: int
    b: tuple[int, ...] = ()
"""


def test_pickles_are_equal_where_nobody_made_one_before(tmp_path):
    tmp_path.joinpath("rows.py").write_text(ROWS)

    def said(code):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert not done.returncode, done.stderr
        return done.stdout

    text = said("import pickle; from rows import Row; print(pickle.dumps([Row(1), Row(1), Row(2, (3,))]))")
    code = f"import pickle; a, b, c = pickle.loads({text.strip()}); print(a == b, a == c, len({{a, b, c}}), c)"
    assert said(code) == "True False 2 Row(a=2, b=(3,))\n"
