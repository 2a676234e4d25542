"""oprack ops [PATTERN] [--pack NAME] [--missing [MODEL]] [--json] [--proto FILE]"""

from __future__ import annotations

import argparse
from fnmatch import fnmatchcase
from typing import Any

from oprack.cli.main import FINDING, OK
from oprack.cli.output import add_block, add_json, manager_of, print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", nargs="?", default="*", help="part of an op type, or a pattern such as 'conv*_grad'")
    parser.add_argument("--pack", metavar="NAME", help="only those of a pack, by its name or its distribution's")
    parser.add_argument(
        "--proto",
        metavar="FILE",
        help="write their signatures as Fluid's OpProto messages, one after the other in field 1 of the file",
    )
    parser.add_argument(
        "--missing",
        nargs="?",
        const="",
        metavar="MODEL",
        help="list what no installed pack brings, of a model's op types or else of Paddle's, and what to install",
    )
    add_json(parser)
    add_block(parser)


def run(args: argparse.Namespace) -> int:
    from oprack.errors import DuplicateOpError, NotFoundError

    manager = manager_of(args)
    pattern = args.pattern if any(c in args.pattern for c in "*?[") else f"*{args.pattern}*"
    if args.missing is not None:
        from oprack.cli.missing import run as run_missing

        return run_missing(args, manager, pattern)
    op_types = manager.op_types()
    if args.pack:
        chosen = [p for p in manager.packs() if args.pack in (p.name, p.distribution)]
        if not chosen:
            names = ", ".join(p.name for p in manager.packs())
            raise NotFoundError(f"--pack {args.pack}: no installed pack has this name; installed: {names}")
        op_types = [t for t in op_types if any(t in p.op_types for p in chosen)]
    rows: list[dict[str, Any]] = []
    for op_type in op_types:
        if not fnmatchcase(op_type, pattern):
            continue
        try:
            places = manager.place_kinds(op_type)
            rows.append({"op": op_type, "version": manager.op_version(op_type), "pack": manager.owner(op_type),
                         "places": places, "error": ""})  # fmt: skip
        except DuplicateOpError as e:
            rows.append({"op": op_type, "version": None, "pack": "", "places": [], "error": str(e)})
    if args.proto and rows:
        from oprack.io.atomic import write_atomic
        from oprack.op.wire import op_protos_bytes

        protos = [manager.op_info(r["op"]).proto for r in rows if not r["error"]]
        write_atomic(args.proto, op_protos_bytes(protos))
        print(f"{args.proto}: {len(protos)} ops")
    elif args.json:
        print_json(rows)
    elif rows:
        print_table(
            ("OP", "VERSION", "PACK", "PLACES"),
            [(r["op"], r["version"], r["pack"], ", ".join(r["places"]) or r["error"] or "runs itself") for r in rows],
        )
    else:
        of_pack = f" of pack {args.pack}" if args.pack else ""
        print(f"no op{of_pack} matches {args.pattern!r}; `oprack packs` lists what is installed")
    return OK if rows else FINDING
