"""oprack ops [PATTERN] [--pack NAME] [--missing [MODEL]] [--json] [--proto FILE]"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from oprack.cli.main import FINDING, OK
from oprack.cli.output import add_block, add_json, manager_of, print_json, print_table

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager


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
    manager = manager_of(args)
    pattern = args.pattern if any(c in args.pattern for c in "*?[") else f"*{args.pattern}*"
    if args.missing is not None:
        from oprack.cli.missing import run as run_missing

        return run_missing(args, manager, pattern)
    rows = [_row(op_type, manager) for op_type in _op_types(args.pack, manager) if fnmatchcase(op_type, pattern)]
    if args.proto and rows:
        _write_protos(args.proto, [r["op"] for r in rows if not r["error"]], manager)
    elif args.json:
        print_json(rows)
    elif rows:
        _print(rows)
    else:
        of_pack = f" of pack {args.pack}" if args.pack else ""
        print(f"no op{of_pack} matches {args.pattern!r}; `oprack packs` lists what is installed")
    return OK if rows else FINDING


def _print(rows: Sequence[dict[str, Any]]) -> None:
    print_table(
        ("OP", "VERSION", "PACK", "PLACES"),
        [(r["op"], r["version"], r["pack"], ", ".join(r["places"]) or r["error"] or "runs itself") for r in rows],
    )


def _op_types(pack: str | None, manager: PackManager) -> list[str]:
    """The op types of a pack, given by its own name or that of its distribution; without one, of all packs."""
    from oprack.errors import NotFoundError

    if not pack:
        return manager.op_types()
    chosen = [p for p in manager.packs() if pack in (p.name, p.distribution)]
    if not chosen:
        names = ", ".join(p.name for p in manager.packs())
        raise NotFoundError(f"--pack {pack}: no installed pack has this name; installed: {names}")
    return [t for t in manager.op_types() if any(t in p.op_types for p in chosen)]


def _row(op_type: str, manager: PackManager) -> dict[str, Any]:
    """The row of an op; for an op that one pack defines twice, the error."""
    from oprack.errors import DuplicateOpError

    row: dict[str, Any] = {"op": op_type, "version": None, "pack": "", "places": [], "error": ""}
    try:
        places = manager.place_kinds(op_type)
        return row | {"version": manager.op_version(op_type), "pack": manager.owner(op_type), "places": places}
    except DuplicateOpError as e:
        return row | {"error": str(e)}


def _write_protos(path: str, op_types: Sequence[str], manager: PackManager) -> None:
    from oprack.io.atomic import write_atomic
    from oprack.op.wire import op_protos_bytes

    write_atomic(path, op_protos_bytes([manager.op_info(op_type).proto for op_type in op_types]))
    print(f"{path}: {len(op_types)} ops")
