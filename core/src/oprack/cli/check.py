"""oprack check PATH [--update] [--allow-breaking] [--json]"""

from __future__ import annotations

import argparse
from pathlib import Path

from oprack.cli.main import FINDING, OK
from oprack.cli.output import add_json, print_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, help="project directory of a pack (with pyproject.toml)")
    parser.add_argument("--update", action="store_true", help="write the snapshot, to be done with each release")
    parser.add_argument("--allow-breaking", action="store_true", help="with --update: write it though ops break")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    from oprack.packs import compatibility
    from oprack.packs.generate import find_source

    source = find_source(args.path)
    target = source.root / compatibility.FILENAME
    now = compatibility.signatures(source)
    then = compatibility.read(target) if target.is_file() else None
    changes = compatibility.compare(then or {}, now)
    breaking = [c for c in changes if c.breaking]
    written = args.update and (not breaking or args.allow_breaking)
    if written:
        compatibility.write(target, now)
    failed = (bool(breaking) or then is None) and not written
    if args.json:
        rows = [{"op": c.op_type, "breaking": c.breaking, "change": c.text} for c in changes]
        print_json({"snapshot": str(target) if target.is_file() else None, "changes": rows, "ok": not failed})
        return FINDING if failed else OK
    if then is None and not written:
        print(f"{target}: there is no snapshot of the released ops; write it with `oprack check {args.path} --update`")
        return FINDING
    for change in changes if then is not None else ():
        print(("BREAKING  " if change.breaking else "new       ") + f"{change.op_type}: {change.text}")
    print(f"{len(now)} ops compared with {target.name}: {len(breaking)} breaking, {len(changes) - len(breaking)} new")
    if written:
        print(f"{target}: written")
    elif breaking:
        print("Keep old slots and attributes, make new ones dispensable or give them defaults, and add a checkpoint.")
    return FINDING if failed else OK
