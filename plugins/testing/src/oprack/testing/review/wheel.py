"""What the pack's wheel contains and declares."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from oprack.testing.review.subject import Finding, Subject

_IGNORED = shutil.ignore_patterns(".git", ".venv", "venv", "dist", "build", "__pycache__", "*.egg-info", ".*_cache")


def review(subject: Subject) -> Iterator[Finding]:
    """Build the wheel as pip would, in a copy of the project, and look into it."""
    with tempfile.TemporaryDirectory() as folder:
        built = _build(subject.path, Path(folder))
        if isinstance(built, Finding):
            yield built
            return
        with zipfile.ZipFile(built) as wheel:
            names = set(wheel.namelist())
            texts = {n.rpartition("/")[2]: wheel.read(n).decode() for n in names if re.search(r"\.dist-info/[^/]+$", n)}
    yield from _files(subject, names)
    yield from _declared(subject, texts.get("METADATA", ""), texts.get("entry_points.txt", ""))


def _build(path: Path, folder: Path) -> Path | Finding:
    """The wheel, or why there is none."""
    system = tomllib.loads((path / "pyproject.toml").read_text(encoding="utf-8")).get("build-system", {})
    backend = system.get("build-backend", "setuptools.build_meta")
    shutil.copytree(path, folder / "project", ignore=_IGNORED)
    code = f"import importlib; importlib.import_module({backend!r}).build_wheel({str(folder)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder / "project", capture_output=True, text=True, check=False
    )
    wheels = list(folder.glob("*.whl"))
    if wheels:
        return wheels[0]
    last = (done.stderr.strip().splitlines() or ["no wheel was written"])[-1]
    if "ModuleNotFoundError" in last:
        needed = " ".join(system.get("requires", ["setuptools"]))
        return Finding("wheel", f"the wheel was not looked at: {last}", f"pip install {needed}", note=True)
    return Finding("wheel", f"no wheel can be built: {last}", "mend pyproject.toml; `pip wheel --no-deps .` tries it")


def _files(subject: Subject, names: set[str]) -> Iterator[Finding]:
    top = subject.source.directory.parents[subject.source.package.count(".")]
    kept = (p for p in subject.source.directory.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    lacking = sorted(f for p in kept if (f := p.relative_to(top).as_posix()) not in names and not f.endswith(".pyc"))
    if lacking:
        shown = ", ".join(lacking[:5]) + (f" and {len(lacking) - 5} more" if len(lacking) > 5 else "")
        fix = "let the build backend pack the whole package, data files too; an ignore file may hide some from it"
        yield Finding("wheel", f"the wheel lacks {shown}", fix)
    package = subject.source.package.replace(".", "/")
    if not any(n == f"{package.partition('/')[0]}/py.typed" or n == f"{package}/py.typed" for n in names):
        yield Finding(
            "wheel",
            "the wheel has no py.typed, so type checkers take nothing of it",
            f"add an empty file py.typed to {subject.source.directory}",
        )
    if not any(re.search(r"\.dist-info/.*(LICEN[CS]E|COPYING)", n, re.IGNORECASE) for n in names):
        yield Finding(
            "wheel", "the wheel has no licence", "put a file LICENSE beside pyproject.toml and name it by license-files"
        )


def _declared(subject: Subject, metadata: str, entry_points: str) -> Iterator[Finding]:
    if "[oprack.packs]" not in entry_points:
        fix = '[project.entry-points."oprack.packs"] belongs into pyproject.toml'
        yield Finding(
            "wheel", "the wheel declares no entry point of the group oprack.packs: nobody finds the pack", fix
        )
    required = re.findall(r"(?m)^Requires-Dist:\s*(.+)$", metadata.partition("\n\n")[0])
    plain = [r for r in required if "extra ==" not in r]
    core = next((r for r in plain if re.match(r"oprack(?![\w.-])", r)), None)
    if core is None or not re.search(r"[>~=]", core):
        yield Finding(
            "wheel",
            f"the wheel requires {core or 'no oprack'}, without the oldest version that it works with",
            'write dependencies = ["oprack>=..."] with the version that you tested; oprack holds to it at load',
        )
    names = {re.split(r"[^\w.-]", r, maxsplit=1)[0].replace("_", "-").lower() for r in required}
    for module, files in sorted(_imported(subject).items()):
        owners = {d.replace("_", "-").lower() for d in importlib.metadata.packages_distributions().get(module, [])}
        if owners and not owners & names:
            yield Finding(
                "wheel",
                f"{', '.join(files)} imports {module}, which the dependencies do not name",
                f'add "{min(owners)}" to dependencies in pyproject.toml, or to an extra where the pack does without',
            )


def _imported(subject: Subject) -> dict[str, list[str]]:
    """Top-level modules of others that the package imports -> names of its files."""
    own = {subject.source.package.partition(".")[0], "oprack", *sys.stdlib_module_names}
    found: dict[str, list[str]] = {}
    for file in sorted(subject.source.directory.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]
            for name in {m.partition(".")[0] for m in modules} - own:
                files = found.setdefault(name, [])
                files += [file.name] if file.name not in files else []
    return found
