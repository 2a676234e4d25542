"""oprack ops --missing [MODEL]: op types that no installed pack brings, and the distributions that do."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from oprack.cli.main import FINDING, OK
from oprack.cli.models import model_arguments
from oprack.cli.output import print_json, print_table, printable
from oprack.errors import NotFoundError

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager

PADDLE = "Paddle 2.6.2"


def run(args: argparse.Namespace, manager: PackManager, pattern: str) -> int:
    """List the op types of a model, or of Paddle, that match a pattern and are missing."""
    from oprack.packs.advice import DISTRIBUTION, paddle_ops

    if not args.missing and not paddle_ops():
        raise NotFoundError(f"the op types of {PADDLE} are in another distribution: pip install {DISTRIBUTION}")
    op_types = _of_model(args) if args.missing else paddle_ops()
    matching = sorted({t for t in op_types if fnmatchcase(t, pattern)})
    rows = _rows([t for t in matching if not manager.has_op(t)], manager)
    if args.json:
        print_json(rows)
    else:
        _print(rows, f"{len(rows)} of {len(matching)} op types of {printable(args.missing) or PADDLE} are missing")
    return FINDING if rows else OK


def _print(rows: list[dict[str, Any]], summary: str) -> None:
    if rows:
        table = [(r["op"], r["state"] or r["distribution"] or f"none: {r['reason'] or 'not known'}") for r in rows]
        print_table(("OP", "DISTRIBUTION"), table)
        print()
    names = sorted({r["distribution"] for r in rows if r["distribution"] and not r["state"]})
    print(summary + (f"; pip install {' '.join(names)}" if names else ""))


def _rows(missing: Iterable[str], manager: PackManager) -> list[dict[str, Any]]:
    """For each op type, the distribution that brings it or the reason why none does, and the state of an installed pack
    that brings it in vain.
    """
    from oprack.packs.advice import home, why_missing

    states = {t: f"pack {p.name} is {p.status}" for p in manager.packs() if p.status != "ok" for t in p.op_types}
    return [
        {"op": t, "distribution": home("ops", t), "state": states.get(t, ""), "reason": why_missing(t)} for t in missing
    ]


def _of_model(args: argparse.Namespace) -> Iterable[str]:
    from oprack.io.inference_model import load_program

    path, model_filename, _ = model_arguments(argparse.Namespace(model=args.missing, params=None))
    program, _, _ = load_program(path, model_filename=model_filename)
    return (op.type for block in program.blocks for op in block.ops)
