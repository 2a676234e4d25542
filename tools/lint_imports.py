"""Runs import-linter on the package oprack as users have it: the rooms of all distributions in one folder."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from importlinter.cli import lint_imports
from joined import ROOT, join


def main() -> int:
    """Check the contracts of pyproject.toml; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, str(join(Path(folder))))
        return int(lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True))


if __name__ == "__main__":
    sys.exit(main())
