"""oprack ops [PATTERN] [--pack NAME] [--missing [MODEL]] [--json] [--proto FILE]"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from oprack.cli.main import FINDING, OK
from oprack.cli.output import add_block, add_json, manager_of, model_arguments, print_json, print_table
from oprack.python.text import printable

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager

PADDLE = "Paddle 2.6.2"


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
        return _run_missing(args, manager, pattern)
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


# What is missing ------------------------------------------------------------------------------------------------------
def _run_missing(args: argparse.Namespace, manager: PackManager, pattern: str) -> int:
    """List the op types of a model, or of Paddle, that match a pattern and are missing."""
    from oprack.names.tables import paddle_ops

    op_types, sources = _of_model(args) if args.missing else (paddle_ops(), {})
    matching = sorted({t for t in op_types if fnmatchcase(t, pattern)})
    rows = _missing_rows([t for t in matching if not manager.has_op(t)], manager, sources)
    if args.json:
        print_json(rows)
    else:
        _print_missing(
            rows, f"{len(rows)} of {len(matching)} op types of {printable(args.missing) or PADDLE} are missing"
        )
    return FINDING if rows else OK


def _print_missing(rows: list[dict[str, Any]], summary: str) -> None:
    if rows:
        table = [(r["op"], _bringer(r)) for r in rows]
        print_table(("OP", "DISTRIBUTION"), table)
        print()
    names = sorted({r["distribution"] for r in rows if r["distribution"] and not r["state"]})
    print(summary + (f"; pip install {' '.join(names)}" if names else ""))


def _bringer(row: dict[str, Any]) -> str:
    """What brings a missing op: a distribution of ours, or that with which the model says that it was saved."""
    if row["saved_with"] and not row["state"] and not row["distribution"]:
        return f"{row['saved_with']}, as the model says"
    return row["state"] or row["distribution"] or f"none: {row['reason'] or 'not known'}"


def _missing_rows(
    missing: Iterable[str], manager: PackManager, sources: Mapping[str, tuple[str, str]]
) -> list[dict[str, Any]]:
    """For each op type, the distribution that brings it or the reason why none does, the one that the model was saved
    with, and the state of an installed pack that brings it in vain.
    """
    from oprack.names.tables import home, why_missing

    states = {t: f"pack {p.name} is {p.status}" for p in manager.packs() if p.status != "ok" for t in p.op_types}
    return [
        {
            "op": t,
            "distribution": home("ops", t),
            "saved_with": " ".join(sources.get(t, ())).strip(),
            "state": states.get(t, ""),
            "reason": why_missing(t),
        }
        for t in missing
    ]


def _of_model(args: argparse.Namespace) -> tuple[Iterable[str], Mapping[str, tuple[str, str]]]:
    from oprack.io.inference_model import load_program

    path, model_filename, _ = model_arguments(argparse.Namespace(model=args.missing, params=None))
    program, _, _ = load_program(path, model_filename=model_filename)
    return (op.type for block in program.blocks for op in block.ops), program.desc.op_sources
