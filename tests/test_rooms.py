"""The rooms of the package oprack: how many modules each has, and that no class is cut into several by inheritance."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from joined import PARTS

FILES = [(part, file) for part in PARTS for file in part.rglob("*.py")]

# A room that has more than this is hard to know by heart; these have more, and may only get fewer.
MODULES = 12
LARGER: dict[str, int] = {}
# base -> why it stands in another file of the room than its only subclass
SPLIT = {
    "GlobalRule": "of ops without sequences; those with some add to it",
    "IdentityContext": "the other context is the runtime's",
    "OpMethods": "the stub package has a module with one method for each op in its place",
    "Plan": "as GlobalRule",
    "Rows": "as GlobalRule",
    "TensorMethods": "of eager tensors, installed when ops can be called",
    "VariableHandle": "ops are appended with it, below Variable",
}


def rooms() -> dict[str, int]:
    """Room -> how many modules it has, without __init__ and generated ones; `core`: those in no folder."""
    named = [(part, f) for part, f in FILES if f.name != "__init__.py" and not f.name.endswith("_pb2.py")]
    top = {part: part.parents[1].name for part in PARTS}
    return dict(Counter(f.parent.relative_to(p).as_posix() if f.parent != p else top[p] for p, f in named))


def split_classes(sources: dict[Path, str]) -> set[str]:
    """Classes whose only subclass stands in another file of the same folder."""
    homes: dict[str, set[Path]] = {}
    subclasses: dict[str, list[Path]] = {}
    for file, text in sources.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(file)
                for base in node.bases:
                    base = base.value if isinstance(base, ast.Subscript) else base
                    subclasses.setdefault(getattr(base, "attr", getattr(base, "id", "")), []).append(file)
    return {
        name
        for name, below in subclasses.items()
        if len(below) == 1 and len(homes.get(name, ())) == 1
        for home in homes[name]
        if home != below[0] and home.parent == below[0].parent
    }


@pytest.mark.parametrize(("room", "count"), sorted(rooms().items()))
def test_a_room_has_modules_that_can_be_known_by_heart(room: str, count: int) -> None:
    assert count <= LARGER.get(room, MODULES), f"{room}: put the new module's text into the one of its subject"


def test_rooms_that_got_smaller_stay_so():
    counts = rooms()
    assert {room: counts.get(room, 0) for room in LARGER} == LARGER, "write the new, smaller numbers here"


def test_one_class_for_one_object():
    assert split_classes({f: f.read_text("utf-8") for _, f in FILES}) == set(SPLIT)


def test_a_class_cut_in_two_is_found():
    here, there = Path("room/a.py"), Path("room/b.py")
    assert split_classes({here: "class Half: ...", there: "class Whole(Half): ..."}) == {"Half"}
    assert split_classes({here: "class Half: ...\nclass Whole(Half): ..."}) == set()
    assert split_classes({here: "class Base: ...", there: "class A(Base): ...\nclass B(Base): ..."}) == set()
    assert split_classes({here: "class Half: ...", Path("other/b.py"): "class Whole(Half): ..."}) == set()


def test_a_room_with_the_name_of_a_function_can_be_called():
    """Once a room was imported, `oprack.<room>` is the module, whatever the name meant before."""
    rooms = sorted({f.relative_to(part).parts[0].removesuffix(".py") for part, f in FILES})
    code = f"""if True:
        import importlib, oprack
        functions = [n for n in {rooms} if n in oprack.__all__ and callable(getattr(oprack, n))]
        for name in functions:
            assert callable(importlib.import_module("oprack." + name)), name
        print(*functions)
        assert oprack.data("x", [3]).name == "x"
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "data" in done.stdout.split(), done.stderr
