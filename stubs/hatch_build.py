"""Build hook: writes the stubs of the packs that `oprack[packs]` names, from their sources in the checkout."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "oprack-stubs"


class StubsHook(BuildHookInterface):  # type: ignore[type-arg]
    """The stubs are in an unpacked sdist; in a checkout `oprack stubs` writes them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before a wheel or an sdist is built.

        Args:
            version: "editable" or "standard".
            build_data: What goes into the archive.
        """
        folder = Path(self.root, PACKAGE)
        if not folder.is_dir():
            scratch = tempfile.mkdtemp()
            atexit.register(shutil.rmtree, scratch, ignore_errors=True)
            folder = write_stubs(Path(self.root).parent, Path(scratch))
        build_data["force_include"][str(folder)] = PACKAGE


def write_stubs(checkout: Path, target: Path) -> Path:
    """Write the stub package of the packs of `oprack[packs]`.

    Nothing of the checkout has to be installed: metadata beside its sources let the core find the packs.

    Args:
        checkout: The repository.
        target: An empty folder.

    Returns:
        The folder oprack-stubs in it.
    """
    projects = {}
    for file in (*checkout.glob("core/pyproject.toml"), *checkout.glob("*/*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        projects[project["name"]] = (file.parent, project)
    core = projects["oprack"][1]
    required = [re.split(r"[^\w-]", r)[0] for r in [*core["dependencies"], *core["optional-dependencies"]["packs"]]]
    path, packs = [], []
    for name in ("oprack", *(n for n in required if n in projects and n != PACKAGE)):
        folder, project = projects[name]
        path.append(str(folder / "src"))
        entry_points = project.get("entry-points", {}).get("oprack.packs")
        if entry_points is None:
            continue  # a room that the core imports
        packs += entry_points if name != "oprack" else ()
        metadata = target / f"{name.replace('-', '_')}-{project['version']}.dist-info"
        metadata.mkdir()
        lines = [f"{key} = {value}" for key, value in entry_points.items()]
        (metadata / "entry_points.txt").write_text("\n".join(["[oprack.packs]", *lines, ""]), encoding="utf-8")
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {project['version']}\n", encoding="utf-8"
        )
    path = [str(target), *path, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "OPRACK_PACKS": ",".join(packs)}
    command = [sys.executable, "-m", "oprack", "stubs", str(target)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return target / PACKAGE
