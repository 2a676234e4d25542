"""The package oprack as users have it, in one folder: in a checkout several distributions have rooms of it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The package's folders: of the core, and of the distributions that bring rooms or tables beside it
PARTS = [ROOT / "core" / "src" / "oprack", *sorted(ROOT.glob("plugins/*/src/oprack"))]


def join(folder: Path) -> Path:
    """Fill a folder with links to all modules of the package; another process may do the same at the same time.

    Args:
        folder: Where to make the folder `oprack`; one whose links are other ones is replaced.

    Returns:
        The folder.
    """
    package = folder / "oprack"
    # links to files and not to rooms, since some readers follow no links to folders
    links = {file.relative_to(part): file for part in PARTS for file in part.rglob("*.py")}
    if {link.relative_to(package): link.readlink() for link in package.rglob("*.py")} == links:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(dir=folder))
    for name, file in links.items():
        (fresh / name).parent.mkdir(parents=True, exist_ok=True)
        (fresh / name).symlink_to(file)
    old = Path(tempfile.mkdtemp(dir=folder))
    with contextlib.suppress(FileNotFoundError):
        package.rename(old)
    with contextlib.suppress(OSError):  # another process was first
        fresh.rename(package)
    shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(fresh, ignore_errors=True)
    return folder
