"""Directories that look like site-packages, filled with packs, and interpreters that see nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import importlib_metadata

ROOT = Path(__file__).parents[1]
CORE = [ROOT / "core" / "src", ROOT / "plugins" / "names" / "src"]
"""The core, with what pip installs with it."""
FIXTURES = Path(__file__).parent / "fixtures" / "packs"
GROUP = "oprack.packs"


def write_metadata(site: Path, distribution: str, version: str, entry_points: dict[str, str]) -> Path:
    """A dist-info directory with entry points of oprack.packs."""
    directory = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    directory.mkdir(parents=True)
    (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    lines = "".join(f"{name} = {value}\n" for name, value in entry_points.items())
    (directory / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")
    return directory


def install(site: Path, *names: str) -> Path:
    """Put fixture packs into `site` as pip would; returns `site`."""
    for name in names:
        project = tomllib.loads((FIXTURES / name / "pyproject.toml").read_text())["project"]
        write_metadata(site, project["name"], project["version"], project["entry-points"][GROUP])
        shutil.copytree(FIXTURES / name / "src", site, dirs_exist_ok=True)
    return site


def entry_points(site: Path) -> list[Any]:
    """Entry points of the packs in `site` alone."""
    found = importlib_metadata.Distribution.discover(path=[str(site)])
    return sorted((e for dist in found for e in dist.entry_points if e.group == GROUP), key=lambda e: e.name)


def synthetic(site: Path, count: int) -> None:
    """`count` packs with two ops each; nothing of them can be imported but pack.py."""
    for i in range(count):
        name = f"synthetic_{i}"
        write_metadata(site, f"oprack-synthetic-{i}", "0.1", {name: f"{name}.pack"})
        package = site / name
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "pack.py").write_text(
            "from oprack import hookimpl\n\n@hookimpl\ndef oprack_ops(register):\n    register.manifest(__package__)\n"
        )
        ops = "".join(
            f'\n[ops.{name}_{op}]\ndefine = "{name}.ops.{op}:{op.title()}"\nversion = 0\n'
            f'kernels.cpu = ["{name}.kernels.{op}"]\n'
            for op in ("first", "second")
        )
        (package / "ops.toml").write_text("schema_version = 1\n" + ops)


def libraries(directory: Path) -> Path:
    """A directory with links to all that is installed here, except core, packs, and distributions' metadata."""
    directory.mkdir()
    for home in Path(sysconfig.get_path("purelib")).iterdir():
        ours = home.name.startswith(("oprack", "_oprack", "__editable__"))
        if not ours and home.suffix not in (".pth", ".dist-info"):
            (directory / home.name).symlink_to(home)
    return directory


def environment(paths: Iterable[Path], **variables: str) -> dict[str, str]:
    """Environment of an interpreter (run with -S) that finds core and `paths`, with the cache off."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPRACK_", "PYTHON"))}
    path = os.pathsep.join(map(str, [*CORE, *paths]))
    return kept | {"PYTHONPATH": path, "OPRACK_CACHE": "0", "OPENBLAS_NUM_THREADS": "1"} | variables


def run_python(*arguments: str, env: dict[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run python -S with these arguments."""
    command = [sys.executable, "-S", *arguments]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
