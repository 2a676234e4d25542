"""The repository as a whole: pins, links, sizes of files."""

from __future__ import annotations

import functools
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
PROJECTS = [
    ROOT / "core" / "pyproject.toml",
    *sorted(ROOT.glob("op_packages/*/pyproject.toml")),
    *sorted(ROOT.glob("plugins/*/pyproject.toml")),
    ROOT / "stubs" / "pyproject.toml",
]
DOCUMENTS = [
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/*.md", "plugins/*/*.md", "op_packages/*/README.md")
    for path in sorted(ROOT.glob(pattern))
]
FOLDERS = ("core", "docs", "examples", "op_packages", "plugins", "stubs", "templates", "tests", "tools")
OF_USERS = {".downloads/lac", "metrics.json", "serve.toml"}  # written by who follows a document
LINE_LIMIT = 500


def name_of(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-").replace(".", "-")


def own_names() -> set[str]:
    return {name_of(tomllib.loads(path.read_text("utf-8"))["project"]["name"]) for path in PROJECTS}


def test_every_dependency_is_pinned():
    pins = {name_of(line) for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if "==" in line}
    wanted = set()
    for path in PROJECTS:
        wanted |= {name_of(r) for r in tomllib.loads(path.read_text("utf-8"))["project"]["dependencies"]}
    for group in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"].values():
        wanted |= {name_of(r) for r in group if isinstance(r, str)}
    assert wanted - own_names() <= pins


def test_pins_install_with_the_oldest_python():
    """Some need a patch release of it that a long-lived system never gets."""
    oldest = tomllib.loads(PROJECTS[0].read_text("utf-8"))["project"]["requires-python"].removeprefix(">=") + ".0"
    needs = {name_of(d.name): SpecifierSet(d.metadata.get("Requires-Python") or "") for d in metadata.distributions()}
    assert {name: str(python) for name, python in needs.items() if not python.contains(oldest)} == {}


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_distributions_have_one_version(path):
    version = tomllib.loads(PROJECTS[0].read_text("utf-8"))["project"]["version"]
    assert tomllib.loads(path.read_text("utf-8"))["project"]["version"] == version


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text("utf-8"))
    # The site generates its reference; test_docs follows these links.
    made = re.compile(r"(\.\./|^)(reference|ops)/")
    local = [target for target in targets if "://" not in target and not made.search(target)]
    assert [target for target in local if not (document.parent / target).exists()] == []


@functools.cache
def paths_of_the_repository():
    """Every file and folder, and each of its endings: "core/src/oprack/io/files.py", "io/files.py", "files.py" ..."""
    found = set()
    for path in (p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if "__pycache__" not in p.parts):
        parts = path.relative_to(ROOT).parts
        found.update("/".join(parts[i:]) for i in range(len(parts)))
    return found | {path.name for path in ROOT.iterdir()}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_documents_name_exist(document):
    if document.name == "CHANGELOG.md":
        pytest.skip("it tells of files as they were")
    text = re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.DOTALL)
    named = re.findall(r"`([\w./-]+?)/?(?::\w[\w.]*)?`", text)  # without placeholders such as <family>
    files = {n for n in named if re.search(r"^\w+/\w|\w\.(py|md|toml|c|h|json)$", n) and not n.startswith("out/")}
    assert files - OF_USERS - paths_of_the_repository() == set()


def test_no_source_file_is_too_long():
    files = [file for path in PROJECTS for file in (path.parent / "src").rglob("*.py") if "_pb2" not in file.name]
    lengths = {str(file.relative_to(ROOT)): len(file.read_text("utf-8").splitlines()) for file in files}
    assert {file: lines for file, lines in lengths.items() if lines > LINE_LIMIT} == {}
