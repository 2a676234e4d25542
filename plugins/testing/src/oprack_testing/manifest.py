"""oprack manifest PATH... [--check] [--homes]"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from pathlib import Path

from oprack.cli.main import FINDING, OK


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, nargs="+", help="project directory of a pack (with pyproject.toml)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is stale")
    parser.add_argument(
        "--homes",
        action="store_true",
        help="write the core's table of what these packs bring instead, from which an unknown op's pack is known",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.homes:
        return _homes(args.path, args.check)
    return max(_one(path, args.check) for path in args.path)


def _homes(paths: Sequence[Path], check: bool) -> int:
    from oprack.names.tables import HOMES
    from oprack.testing.review.manifest import homes_text
    from oprack.testing.review.pack_source import brought, find_source

    sources = [find_source(path) for path in paths]
    contributions = {source.distribution: brought(source) for source in sources}
    ops = sum(len(kinds["ops"]) for kinds in contributions.values())
    return _put(
        HOMES,
        homes_text(contributions),
        f"{len(contributions)} distributions, {ops} ops",
        "oprack manifest --homes PATH... of all packs and plugins (make homes)",
        check,
    )


def _one(path: Path, check: bool) -> int:
    from oprack.testing.review.manifest import manifest_text
    from oprack.testing.review.pack_source import find_source, generate, registered_text

    source = find_source(path)
    manifest = generate(source)
    kernels = sum(len(entry.kernels) > 0 for entry in manifest.ops.values())
    summary = f"{len(manifest.ops)} ops, {kernels} with kernels, kernels for {len(manifest.kernels)} ops of other packs"
    if bare := [op_type for op_type, entry in manifest.ops.items() if not entry.kernels and not entry.operator]:
        print(f"Note: {', '.join(bare)} can't run: no module below {source.package}.kernels has a kernel of it")
    if manifest.facets:
        summary += f", facets for {len(manifest.facets)}"
    if text := registered_text(source, manifest):
        print(f"Note: {text}")
    return _put(source.manifest_path, manifest_text(manifest), summary, f"oprack manifest {path}", check)


def _put(target: Path, text: str, summary: str, command: str, check: bool) -> int:
    """Write a generated file, or with `check` only report whether it is up to date; returns the exit code."""
    current = target.read_text(encoding="utf-8") if target.is_file() else ""
    if current == text:
        print(f"{target}: up to date ({summary})")
        return OK
    if check:
        print(f"{target}: stale; run `{command}`")
        old, new = current.splitlines(), text.splitlines()
        print("\n".join(difflib.unified_diff(old, new, target.name, "generated", lineterm="", n=1)))
        return FINDING
    temporary = target.with_suffix(".toml.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(target)
    print(f"{target}: written ({summary})")
    return OK
