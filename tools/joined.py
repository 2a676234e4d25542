"""The package oprack as users have it, in one folder: in a checkout several distributions have rooms of it."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = [ROOT / "core" / "src" / "oprack", *sorted(ROOT.glob("plugins/*/src/oprack"))]


def join(folder: Path) -> Path:
    """Fill a folder with links to all modules of the package.

    Args:
        folder: Where to make the folder `oprack`; one that is there is replaced.

    Returns:
        The folder.
    """
    package = folder / "oprack"
    shutil.rmtree(package, ignore_errors=True)
    for part in PARTS:
        for file in part.rglob("*.py"):  # not whole rooms: some readers follow no links to folders
            link = package / file.relative_to(part)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(file)
    return folder
