"""What distributions say of each other: versions, the packs that they need, and the extras that bring all of them."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from oprack.names.tables import home, names

ROOT = Path(__file__).parents[1]
PACKS = sorted(p.parent for p in ROOT.glob("op_packages/*/pyproject.toml"))
PLUGINS = sorted(p.parent for p in ROOT.glob("plugins/*/pyproject.toml"))
# Who calls by name what another distribution brings. Kernel libraries and places only take such calls over where they
# are, and that is no need of theirs.
CALLERS = [*PACKS, *(p for p in PLUGINS if p.name in ("pir",))]
# Functions that take the type of an op as their first argument and make it run, or append it.
CALLS = {"GradOp", "OpDesc", "_apply", "append", "append_op", "apply", "create_op", "run_op", "step", "step.all"}
NAMESPACES = {"initializer", "layers", "nets", "nn", "optimizer"}
# Ops that a distribution calls only for inputs that are sequences. Their distribution requires the caller, so that it
# can't be required in turn; where it is missing, the error names it.
WHERE_ASKED = {
    "oprack-nn": {
        *("sequence_attention", "sequence_concat", "sequence_unfold", "sequence_pool", "sequence_expand_as"),
        "sequence_select",
    }
}


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]


def requirements(folder: Path) -> list[str]:
    found = project(folder)
    return [*found["dependencies"], *(r for group in found.get("optional-dependencies", {}).values() for r in group)]


def ours(requirement: str) -> str:
    """The name of a distribution of this repository, without extras; "" for one of others."""
    name = re.match(r"[\w-]+", requirement)[0]
    return name if name == "oprack" or name.startswith("oprack-") else ""


def needed(folder: Path) -> dict[str, str]:
    """Distributions whose ops or functions the code of one calls -> one such place."""
    found: dict[str, str] = {}
    where_asked = WHERE_ASKED.get(project(folder)["name"], ())
    for file in sorted((folder / "src").rglob("*.py")):
        if file.name == "fuzz.py" or "passes" in file.parts:
            continue  # blocks of generated nets, and patterns: they are left out where an op is not there
        for line, kind, name in called(ast.parse(file.read_text("utf-8"))):
            if name in where_asked:
                continue
            found.setdefault(home(kind, name), f"{file.relative_to(folder)}:{line} {name}")
    return {name: where for name, where in found.items() if name not in ("", project(folder)["name"])}


def called(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """(line, kind, name) of what a module asks for by name, as `homes.toml` has it."""
    spelled = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "oprack"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            namespace = spelled.get(node.value.id, "")
            if namespace in NAMESPACES:
                yield node.lineno, namespace, node.attr
            elif namespace == "functional":
                yield node.lineno, "ops", node.attr
        elif isinstance(node, ast.FunctionDef):
            defaults = zip(reversed(node.args.args), reversed(node.args.defaults), strict=False)
            acts = [value for argument, value in defaults if argument.arg == "act"]
            yield from ((node.lineno, "ops", v.value) for v in acts if isinstance(v, ast.Constant) and v.value)
        elif isinstance(node, ast.Call) and node.args:
            function, first = ast.unparse(node.func), node.args[0]
            if function.rpartition(".")[2] in CALLS or function in CALLS:
                types = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
                yield from ((node.lineno, "ops", t.value) for t in types if isinstance(t, ast.Constant))


@pytest.mark.parametrize("folder", CALLERS, ids=lambda p: p.name)
def test_a_pack_declares_the_packs_that_it_needs(folder: Path) -> None:
    """And those alone, beyond what it imports (tests/test_boundaries.py)."""
    declared = {ours(r) for r in project(folder)["dependencies"]} - {"", "oprack"}
    assert {name: where for name, where in needed(folder).items() if name not in declared} == {}
    sources = "".join(f.read_text("utf-8") for f in (folder / "src").rglob("*.py"))
    imported = {name.replace("_", "-") for name in re.findall(r"(?:from|import) (oprack_\w+)", sources)}
    imported |= {home("rooms", room) for room in re.findall(r"from oprack\.(\w+)", sources)}
    assert declared - needed(folder).keys() - imported == set()


def test_calls_are_found() -> None:
    code = """
from oprack import functional as F, layers
F.relu(x), layers.fc, h.append_op("mul", {}), f("sum")
def conv(x, act="sigmoid", name="tanh"): step("scale" if x else "add", x)
"""
    found = {("ops", name) for name in ("relu", "mul", "sigmoid", "scale", "add")} | {("layers", "fc")}
    assert {entry[1:] for entry in called(ast.parse(code))} == found
    assert {"relu", "mul"} <= set(names("ops")) and home("layers", "fc") == "oprack-nn"


def test_ops_that_only_sequences_lead_to_are_those_of_who_requires_the_caller() -> None:
    for caller, ops in WHERE_ASKED.items():
        for folder in (p for p in PACKS if project(p)["name"] in {home("ops", op) for op in ops}):
            assert caller in {ours(r) for r in project(folder)["dependencies"]}
        source = "".join(f.read_text("utf-8") for p in PACKS if project(p)["name"] == caller for f in p.rglob("*.py"))
        assert {op for op in ops if f"F.{op}" not in source} == set()


def test_no_circle_of_distributions() -> None:
    graph = {project(p)["name"]: {ours(r) for r in project(p)["dependencies"]} - {""} for p in (*PACKS, *PLUGINS)}
    graph["oprack"] = set()
    while leaves := [name for name, needs in graph.items() if not needs & graph.keys()]:
        for name in leaves:
            del graph[name]
    assert graph == {}


@pytest.mark.parametrize("folder", [ROOT / "core", *PACKS, *PLUGINS, ROOT / "stubs"], ids=lambda p: p.name)
def test_versions_of_each_other_are_those_of_this_release(folder: Path) -> None:
    """`make version VERSION=...` writes them all: compatible with the release that they come with."""
    core = project(ROOT / "core")["version"]
    written = {r.split(";")[0].strip() for r in requirements(folder) if ours(r) and not r.startswith("oprack[")}
    assert {r for r in written if not r.endswith(f"~={core}")} == set()


def test_extras_bring_everything() -> None:
    extras = project(ROOT / "core")["optional-dependencies"]
    assert {project(p)["name"] for p in PACKS} <= {ours(r) for r in extras["packs"]}
    assert "oprack[packs]" in extras["cpu"]
    always = project(ROOT / "core")["dependencies"]
    assert {project(p)["name"] for p in PLUGINS} <= {ours(r) for group in (always, *extras.values()) for r in group}
    folders = {project(p)["name"]: p for p in (*PACKS, *PLUGINS, ROOT / "core", ROOT / "stubs")}
    for requirement in (r for group in extras.values() for r in group):
        asked = re.match(r"([\w-]+)\[([\w,-]+)\]", requirement)
        if asked and ours(requirement):
            have = project(folders[asked[1]])["optional-dependencies"]
            assert set(asked[2].split(",")) <= have.keys(), f"{requirement} asks for an extra that is not there"


def test_the_workspace_has_every_distribution() -> None:
    """uv takes those of this checkout, and refuses to install when one that another asks for is not said to be here."""
    uv = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["uv"]
    folders = [ROOT / "core", *PACKS, *PLUGINS, ROOT / "stubs"]
    assert list(uv["sources"]) == sorted(project(p)["name"] for p in folders)
    assert all(source == {"workspace": True} for source in uv["sources"].values())


def test_extras_that_messages_name_are_there() -> None:
    """`pip install oprack[...]` in messages and documents names extras that core has."""
    extras = project(ROOT / "core")["optional-dependencies"].keys()
    texts = [file for room in ("core", "op_packages/*", "plugins/*") for file in ROOT.glob(f"{room}/src/**/*.py")]
    texts += [
        file
        for room in ("", "docs", "docs/*", "core", "stubs", "*/*")
        for file in ROOT.glob(f"{room}/*.md".lstrip("/"))
    ]
    named = {
        extra.strip()
        for file in texts
        for group in re.findall(r"\boprack\[([a-z0-9, ]+)\]", file.read_text("utf-8"))
        for extra in group.split(",")
    }
    assert "cpu" in named and named <= extras
