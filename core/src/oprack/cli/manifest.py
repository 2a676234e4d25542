"""oprack manifest PATH [--check]"""

from __future__ import annotations

import argparse
import difflib
from pathlib import Path

from oprack.cli.main import FINDING, OK


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, nargs="+", help="project directory of a pack (with pyproject.toml)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when ops.toml is stale")


def run(args: argparse.Namespace) -> int:
    return max(_one(path, args.check) for path in args.path)


def _one(path: Path, check: bool) -> int:
    from oprack.packs.generate import find_source, generate
    from oprack.packs.manifest import render

    source = find_source(path)
    manifest = generate(source)
    text, target = render(manifest), source.manifest_path
    current = target.read_text(encoding="utf-8") if target.is_file() else ""
    kernels = sum(len(entry.kernels) > 0 for entry in manifest.ops.values())
    summary = f"{len(manifest.ops)} ops, {kernels} with kernels, kernels for {len(manifest.kernels)} ops of other packs"
    if current == text:
        print(f"{target}: up to date ({summary})")
        return OK
    if check:
        print(f"{target}: stale; run `oprack manifest {path}`")
        old, new = current.splitlines(), text.splitlines()
        print("\n".join(difflib.unified_diff(old, new, "ops.toml", "generated", lineterm="", n=1)))
        return FINDING
    temporary = target.with_suffix(".toml.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(target)
    print(f"{target}: written ({summary})")
    return OK
