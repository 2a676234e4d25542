"""Who may import whom, beyond what import-linter sees: packs, array libraries, and what is imported when."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from joined import PARTS, ROOT

CORE = PARTS[0]
PACKS = sorted(path.parent for path in (ROOT / "op_packages").glob("*/pyproject.toml"))
DISTRIBUTIONS = [*PACKS, *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))]
# Modules of the core in a circle, counting imports for types and those inside functions: who reads one reads all.
LARGEST_CIRCLE = 5
# A class and its own parser and writer: `ProgramDesc.parse` is a method of what it returns.
ALLOWED_CIRCLES = [["oprack.desc.program_desc", "oprack.desc.wire"]]
# Of other distributions, imports for types counted
CIRCLES_WITH_TYPES = {
    "array_api": [["elementwise", "searching"]],
    "cuda": [["testing.namespace", "testing.strict"]],
}
ARRAY_LIBRARIES = ("numpy", "cupy", "scipy", "ml_dtypes")


def package_of(distribution: Path) -> Path:
    """The one import package below src/."""
    (package,) = (path.parent for path in (distribution / "src").glob("*/__init__.py"))
    return package


def imported(file: Path) -> set[str]:
    """Top-level names of all packages that a file imports, at any depth of its code."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def modules_after(code: str, *paths: Path) -> set[str]:
    """Names in sys.modules of a fresh interpreter that ran `code`, with `paths` importable."""
    start = f"import sys; sys.path[:0] = {[str(path) for path in paths]!r}"
    program = f"{start}\n{code}\nimport json; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def imports_of(name: str, files: dict[str, Path], types: bool = False) -> set[str]:
    """Which of `files` a module imports, at its top or in a function; those for types alone where `types` says so."""
    found = set()
    pending: list[ast.AST] = [ast.parse(files[name].read_text("utf-8"))]
    while pending:
        node = pending.pop()
        if not types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending += node.orelse
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            children = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= children & set(files)
            found |= {node.module} if children - set(files) else set()
        else:
            pending += ast.iter_child_nodes(node)
    return found & set(files) - {name}


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected components of more than one module: for each module, what it reaches and is reached from."""
    reached = {}
    for start in graph:
        seen, pending = set(), [start]
        while pending:
            for name in graph[pending.pop()] - seen:
                seen.add(name)
                pending.append(name)
        reached[start] = seen
    found = {frozenset({b for b in reached[a] if a in reached[b]}) for a in graph if a in reached[a]}
    return [set(circle) for circle in found]


def modules_of(parts: list[Path]) -> dict[str, Path]:
    """The modules of the package oprack in some of its parts, without the package itself."""
    return {
        ".".join(("oprack", *f.relative_to(part).with_suffix("").parts)).removesuffix(".__init__"): f
        for part in parts
        for f in part.rglob("*.py")
    }


def test_no_circle_of_modules_at_run_time():
    files = modules_of(PARTS)
    found = circles({name: imports_of(name, files) for name in files})
    assert sorted(map(sorted, found)) == sorted(ALLOWED_CIRCLES)


def test_arrows_between_rooms_point_one_way_for_types_as_well():
    """import-linter leaves imports for types out, since `oprack` itself has those of all rooms."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c["name"] == "Arrows between rooms point one way")
    depth = {room.strip(): i for i, layer in enumerate(layers) for room in re.split(r"[|:]", layer)}
    files = modules_of(PARTS)
    del files["oprack"]
    arrows = {(a.split(".")[1], b.split(".")[1]) for a in files for b in imports_of(a, files, types=True)}
    # oprack.io hands on what other rooms bring, as Paddle's io has it
    assert {(a, b) for a, b in arrows if depth[b] < depth[a]} == {("io", "data"), ("io", "checkpoint")}


def test_no_large_circle_of_modules():
    """Imports for types alone and those inside functions counted; `oprack` itself stands for names of all rooms."""
    files = modules_of(PARTS)
    del files["oprack"]
    found = circles({name: imports_of(name, files, types=True) for name in files})
    assert [sorted(circle) for circle in found if len(circle) > LARGEST_CIRCLE] == []


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda path: path.name)
def test_no_circle_of_modules_of_a_distribution(distribution):
    """Imports for types alone counted, too."""
    package = package_of(distribution)
    files = {
        ".".join(f.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): f
        for f in package.rglob("*.py")
    }
    found = circles({name: imports_of(name, files, types=True) for name in files})
    known = [[f"{package.name}.{name}" for name in circle] for circle in CIRCLES_WITH_TYPES.get(distribution.name, [])]
    assert sorted(map(sorted, found)) == known


def test_imports_of_all_sorts_are_counted(tmp_path):
    (tmp_path / "a.py").write_text("if TYPE_CHECKING:\n    from b import B\ndef f():\n    import c\n")
    files = {name: tmp_path / f"{name}.py" for name in "abc"}
    assert imports_of("a", files) == {"c"} and imports_of("a", files, types=True) == {"b", "c"}


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}, "g": set()}
    assert sorted(map(sorted, circles(graph))) == [["a", "b", "c"], ["d", "e"]]


def test_core_imports_no_pack():
    found = {
        str(file.relative_to(part)): sorted(n for n in imported(file) if n.startswith("oprack_"))
        for part in PARTS
        for file in part.rglob("*.py")
    }
    assert {file: names for file, names in found.items() if names} == {}


def test_import_linter_knows_every_pack():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    names = [f"oprack_{pack.name}" for pack in PACKS]
    assert config["root_packages"] == ["oprack", *names]
    (core,) = (contract for contract in config["contracts"] if contract["name"] == "Core imports no pack")
    assert core["forbidden_modules"] == names


def test_mypy_finds_every_distribution():
    path = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]["mypy_path"]
    assert path.split(":") == [f"{d.relative_to(ROOT).as_posix()}/src" for d in (ROOT / "core", *DISTRIBUTIONS)]


def test_import_oprack_imports_next_to_nothing():
    modules = modules_after("import oprack", CORE.parent)
    assert not modules & {*ARRAY_LIBRARIES, "rich", "pluggy", "google.protobuf"}
    assert not [name for name in modules if name.startswith("oprack_")]


@pytest.mark.parametrize(
    "code",
    [
        "assert (oprack.to_tensor([1.0]) + 1).item() == 2",
        "assert (oprack.nn.Parameter([1.0]) * 2).item() == 2",
        "assert not oprack.gradcheck(lambda x: x * x, [[1.0]])",
        "assert (oprack.jit(lambda x: x - 1)([1.0])).item() == 0",
        "with oprack.no_grad(): assert oprack.functional.relu(np.ones(1)).sum().item() == 1",
        "x = pickle.loads(pickle.dumps(oprack.to_tensor([1.0]))); assert (x + 1).item() == 2",
    ],
)
def test_every_way_to_a_tensor_gives_one_with_its_methods(code):
    modules_after(f"import oprack, pickle, numpy as np\n{code}", CORE.parent, *(p / "src" for p in PACKS))


@pytest.mark.parametrize("pack", PACKS, ids=lambda path: path.name)
def test_definitions_import_no_array_library_and_no_kernel(pack):
    package = package_of(pack)
    names = [f"{package.name}.pack"]
    for file in sorted((package / "ops").rglob("*.py")):
        names.append(".".join(file.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"))
    code = f"import importlib\nfor name in {names!r}: importlib.import_module(name)"
    modules = modules_after(code, CORE.parent, *(p / "src" for p in PACKS))
    assert not modules & set(ARRAY_LIBRARIES)
    assert not [name for name in modules if re.match(r"oprack_\w+\.kernels\b", name)]


# What distributions bring whose name is another one, and what is there where Triton runs a model
OF_OTHER_NAMES = {"nvidia_cudnn_frontend": "cudnn", "grpcio": "grpc", "pillow": "PIL", "protobuf": "google"}
OF_OTHER_NAMES |= {"opentelemetry_sdk": "opentelemetry"}
OF_TRITON = {"triton_python_backend_utils"}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda path: path.name)
def test_imports_are_declared_as_dependencies(distribution):
    project = tomllib.loads((distribution / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [r for group in project.get("optional-dependencies", {}).values() for r in group]
    requirements = [*project["dependencies"], *extras]
    declared = {re.match(r"[\w.-]+", r)[0].replace("-", "_").lower() for r in requirements}
    declared = {"cupy" if name.startswith("cupy") else name for name in declared}
    declared |= {module for name, module in OF_OTHER_NAMES.items() if name in declared}
    package = package_of(distribution)
    allowed = declared | {package.name} | set(sys.stdlib_module_names) | OF_TRITON
    missing = {str(file.relative_to(package)): sorted(imported(file) - allowed) for file in package.rglob("*.py")}
    assert {file: names for file, names in missing.items() if names} == {}


@pytest.mark.parametrize("pack", PACKS, ids=lambda path: path.name)
def test_names_of_a_pack_agree(pack):
    project = tomllib.loads((pack / "pyproject.toml").read_text("utf-8"))["project"]
    package = package_of(pack).name
    assert project["name"] == f"oprack-{pack.name.replace('_', '-')}"
    assert package == f"oprack_{pack.name}"
    assert project["entry-points"]["oprack.packs"] == {pack.name: f"{package}.pack"}
    assert project["license"] == "Apache-2.0"
    assert project["requires-python"] == ">=3.11"
    assert (pack / "README.md").read_text("utf-8").strip()
