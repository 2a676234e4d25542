"""The repository as a whole: pins, links, sizes of files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECTS = [
    ROOT / "core" / "pyproject.toml",
    *sorted(ROOT.glob("op_packages/*/pyproject.toml")),
    *sorted(ROOT.glob("plugins/*/pyproject.toml")),
    ROOT / "stubs" / "pyproject.toml",
]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("examples/*.md"))]
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


@pytest.mark.parametrize("path", PROJECTS, ids=lambda path: path.parent.name)
def test_distributions_have_one_version(path):
    version = tomllib.loads(PROJECTS[0].read_text("utf-8"))["project"]["version"]
    assert tomllib.loads(path.read_text("utf-8"))["project"]["version"] == version


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text("utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (document.parent / target).exists()] == []


def test_no_source_file_is_too_long():
    files = [file for path in PROJECTS for file in (path.parent / "src").rglob("*.py") if "_pb2" not in file.name]
    lengths = {str(file.relative_to(ROOT)): len(file.read_text("utf-8").splitlines()) for file in files}
    assert {file: lines for file, lines in lengths.items() if lines > LINE_LIMIT} == {}
