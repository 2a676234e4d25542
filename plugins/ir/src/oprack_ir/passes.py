"""oprack passes MODEL [--enable NAME] [--int8] [--bf16] [--plan --feed NAME=FILE.npy [--cast]] [--json]"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack.cli.main import OK
from oprack.cli.output import (
    add_block,
    add_json,
    add_model,
    manager_of,
    model_arguments,
    print_json,
    print_table,
    working,
)
from oprack.python.text import printable

from oprack_ir.feeds import add_feeds, explained, read_feeds
from oprack_ir.precisions import add_precisions, precisions_of

if TYPE_CHECKING:
    from oprack.io.inference_model import InferenceModel
    from oprack.runtime import Executor
    from oprack.tensor import Scope


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--plan",
        action="store_true",
        help="run once with the --feed files, and print the code that the rewritten program runs as",
    )
    add_feeds(parser)
    parser.add_argument(
        "--enable", action="append", default=[], metavar="NAME", help="also run this optional pass, such as unpad"
    )
    add_precisions(parser)
    add_json(parser)
    add_block(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from oprack.io import load_inference_model
    from oprack.ir import find_pass, select_passes
    from oprack.ir.models import optimize_model, pass_records
    from oprack.runtime import Executor
    from oprack.tensor import Scope

    from oprack_ir.precisions import unused_precisions

    path, model_filename, params = model_arguments(args)
    scope, executor = Scope(), Executor(manager=manager_of(args))
    precisions = precisions_of(args)
    for name in args.enable:
        find_pass(name, executor.manager)
    passes = select_passes(executor.place, manager=executor.manager, precisions=precisions, enabled=args.enable)
    with working("reading and rewriting the model"):
        model = load_inference_model(path, scope, model_filename=model_filename, params_filename=params)
        rewritten, optimized = optimize_model(model, scope, executor, passes)
    for note in unused_precisions(precisions, optimized, executor.manager):
        print(f"oprack passes: {note}", file=sys.stderr)
    report: dict[str, Any] = {"passes": pass_records(optimized, executor.manager)}
    if args.plan:
        report["plan"] = _plan(rewritten, scope, executor, args)
    if args.json:
        print_json(report)
    else:
        _print_passes(report["passes"])
        if args.plan:
            print(f"\n{printable(report['plan'])}")
    return OK


def _plan(model: InferenceModel, scope: Scope, executor: Executor, args: argparse.Namespace) -> str:
    """The code that a model runs as, after one run with the --feed files.

    Raises FeedError of several kinds when they do not fit.
    """
    feed = read_feeds(args.feed, args.lod, model, args.cast)
    with explained(model, feed), working("running"):
        executor.run(model.program, feed, model.fetch_names, scope, return_numpy=False)
    return executor.prepare(model.program).block(0).plan(model.fetch_names).source()


def _print_passes(rows: Sequence[dict[str, Any]]) -> None:
    """A table of what `pass_records` says, and the sum of it."""
    table = [
        (
            r["pass"],
            r["pack"],
            r["stage"],
            r["matches"],
            r["ops_before"],
            r["ops_after"],
            "yes" if r["strict"] else "no",
            f"{r['milliseconds']:.1f}",
            r["error"],
        )
        for r in rows
    ]
    print_table(("PASS", "PACK", "STAGE", "MATCHES", "OPS BEFORE", "AFTER", "STRICT", "MS", ""), table)
    if rows:
        before, after = rows[0]["ops_before"], rows[-1]["ops_after"]
        print(f"\n{before} ops became {after}. Passes that are not strict may change the order of sums and rounding")
