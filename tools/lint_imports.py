"""Runs import-linter on the package oprack as users have it: the rooms of all distributions in one folder."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[1]


def join(folder: Path) -> None:
    """Fill a folder with links to all rooms and modules of the package, of whatever distribution."""
    folder.mkdir()
    for part in sorted(ROOT.glob("*/src/oprack")) + sorted(ROOT.glob("plugins/*/src/oprack")):
        for room in part.iterdir():
            (folder / room.name).symlink_to(room)


def main() -> int:
    """Check the contracts of pyproject.toml; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        join(Path(folder, "oprack"))
        sys.path.insert(0, folder)
        for name in [n for n in sys.modules if n.partition(".")[0] == "oprack"]:
            del sys.modules[name]
        return int(lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True))


if __name__ == "__main__":
    sys.exit(main())
