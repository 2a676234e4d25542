"""Names that are imported on first use: what type checkers read is what the modules have."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from functools import partial
from pathlib import Path

import oprack
import pytest

ROOT = Path(__file__).parents[1]

# module -> names and where they lie, as the module itself says
MODULES = {
    # oprack.packs can be called, which only oprack.packs itself says
    "oprack": lambda m: {**m._MODULES, **dict.fromkeys(m._SUBMODULES, "oprack"), "packs": "oprack.packs"},
    "oprack.layers": lambda m: m._HOMES,
    "oprack.testing": lambda m: {name: f"oprack.testing.{home}" for name, home in m._MODULES.items()},
    "oprack.testing.fuzz": lambda m: {name: f"oprack.testing.fuzz.{home}" for name, home in m._MODULES.items()},
}


def for_type_checkers(module) -> dict[str, str]:
    """Name -> module of every import in the block `if TYPE_CHECKING`, which must re-export it by `as`."""
    (block,) = (
        node
        for node in ast.parse(Path(module.__file__).read_text("utf-8")).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    found = {}
    for node in block.body:
        for alias in node.names if node.module != "typing" else ():  # what annotations name
            assert alias.asname == alias.name, f"write `import {alias.name} as {alias.name}`"
            found[alias.name] = node.module
    return found


@pytest.mark.parametrize("name", MODULES)
def test_type_checkers_see_the_names_that_there_are(name):
    module = importlib.import_module(name)
    homes = dict(MODULES[name](module))
    assert for_type_checkers(module) == homes
    assert set(module.__all__) - {"__version__"} == set(homes)
    for attribute in module.__all__:
        assert getattr(module, attribute) is not None


def test_classes_show_what_their_init_takes():
    """Before Python 3.11.4 `inspect` and `help` show a `__new__` that takes anything, unless the class says more."""
    kinds = {kind for module in (oprack.nn, oprack.optimizer) for kind in map(partial(getattr, module), dir(module))}
    kinds = {kind for kind in kinds if inspect.isclass(kind) and "*args" in str(inspect.signature(kind.__new__))}
    found = {kind: kind.__signature__ for kind in kinds if inspect.isfunction(kind.__new__)}
    for kind, shown in found.items():
        parameters = list(inspect.signature(kind.__init__).parameters)[1:]
        assert "options" in parameters or list(shown.parameters) == parameters, kind
    assert list(found[oprack.nn.Linear].parameters)[:2] == ["in_features", "out_features"] and len(found) > 50
    with pytest.raises(AttributeError):
        oprack.nn.Linear(2, 3).__signature__  # noqa: B018


def test_dir_has_all_public_names():
    """Those that are imported on first use as well: completion asks dir()."""
    lacking = {}
    for found in pkgutil.walk_packages(oprack.__path__, "oprack."):
        if found.ispkg:
            module = importlib.import_module(found.name)
            lacking[found.name] = sorted(set(getattr(module, "__all__", ())) - set(dir(module)))
    assert {name: names for name, names in lacking.items() if names} == {} and len(lacking) > 10


def test_modules_that_pages_name_need_no_import_of_their_own():
    """`oprack.errors.NotFoundError` is there after `import oprack`, whatever else was imported before."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    named = {room for page in pages for room in re.findall(r"\boprack\.(\w+)\.\w", page.read_text("utf-8"))}
    there = {found.name for found in pkgutil.iter_modules(oprack.__path__)}
    inner = {"cache", "cli", "packs", "python", "desc"}  # told of in docs/design.md, for those who change oprack
    assert named & there - inner <= {*oprack.__all__} and len(named & there) > 15
