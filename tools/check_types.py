"""mypy and pyright on what users copy: the Python in README.md, and the examples. Run by `make lint`.

Both read the stub package that `make stubs` writes, as an editor does. Each snippet of README.md becomes a file in
out/types whose lines have the numbers that they have in README.md.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What a reader has at hand, for the snippet that uses it
GIVEN = "from typing import Any; image: Any = None"
# Rules of an op are functions of a context in a class body, without self, which no type checker knows
DECLARATIVE = (
    '# mypy: disable-error-code="misc, attr-defined"\n'
    "# pyright: reportSelfClsParameterName=false, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false"
)
MYPY = "[mypy]\ncheck_untyped_defs = True\nignore_missing_imports = True\n"
PYRIGHT = {
    "include": [".", "../../examples/*.py"],  # packs of others have tests and settings of their own
    "extraPaths": ["../../examples"],  # which import each other
    "typeCheckingMode": "basic",
    "reportMissingModuleSource": "none",
}


def write_snippets(document: Path, folder: Path) -> list[Path]:
    """Write the Python snippets of a Markdown file as files, each at its own line numbers.

    Args:
        document: The Markdown file.
        folder: Where the files go.

    Returns:
        The files.
    """
    text, files = document.read_text(encoding="utf-8"), []
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        first = text[: found.start(1)].count("\n") + 1  # the line on which the snippet begins
        head = [GIVEN, *(DECLARATIVE.split("\n") if "(OpDef" in found[1] else [])]
        file = folder / f"{document.stem}_line_{first}.py"
        file.write_text("\n".join([*head[::-1], *[""] * (first - len(head) - 1), found[1]]), encoding="utf-8")
        files.append(file)
    return files


def check(folder: Path) -> int:
    """Run both type checkers on the snippets in a folder and on the examples.

    Args:
        folder: Where the snippets and the settings are.

    Returns:
        How many of the two have found something, or could not run.
    """
    (folder / "mypy.ini").write_text(MYPY, encoding="utf-8")
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT), encoding="utf-8")
    # a cache of its own: the check of the source, which runs beside this one, writes to the other
    cache = ROOT / ".mypy_cache" / "examples"
    mypy = [
        "mypy",
        "--cache-dir",
        cache,
        "--config-file",
        folder / "mypy.ini",
        folder,
        *sorted(ROOT.glob("examples/*.py")),
    ]
    pyright = ["pyright", "--project", folder, "--pythonpath", sys.executable]
    failed = 0
    for command in (mypy, pyright):
        print(f"{command[0]} on README.md and the examples:", flush=True)
        done = subprocess.run([sys.executable, "-m", *map(str, command)], cwd=ROOT, check=False)
        failed += done.returncode != 0
    return failed


def main() -> int:
    """The command.

    Returns:
        The exit status.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    folder = ROOT / "out" / "types"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.py"):
        old.unlink()
    write_snippets(ROOT / "README.md", folder)
    return check(folder)


if __name__ == "__main__":
    sys.exit(main())
