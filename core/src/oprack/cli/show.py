"""oprack show MODEL [--json] [--ops] [--passes] [--plan --feed NAME=FILE.npy]"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from oprack.cli.main import FINDING, OK
from oprack.cli.output import (
    add_block,
    add_feeds,
    add_json,
    add_model,
    manager_of,
    model_arguments,
    print_json,
    print_table,
    printable,
    read_feeds,
)

if TYPE_CHECKING:
    from oprack.desc import VarDesc
    from oprack.ir import Optimized
    from oprack.packs.manager import PackManager
    from oprack.program import Program
    from oprack.tensor import Scope


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--ops", action="store_true", help="list every op, block by block")
    parser.add_argument("--passes", action="store_true", help="run the passes for inference, and say what each did")
    parser.add_argument(
        "--plan",
        action="store_true",
        help="run once with the --feed files, passes applied, and print the code that the program runs as",
    )
    add_feeds(parser)
    add_json(parser)
    add_block(parser)


def run(args: argparse.Namespace) -> int:
    from oprack.io.inference_model import load_program

    path, model_filename, _ = model_arguments(args)
    program, feeds, fetches = load_program(path, model_filename=model_filename)
    manager = manager_of(args)
    report = describe_model(program, feeds, fetches, manager)
    if (args.passes or args.plan) and not report["missing_ops"]:
        rewritten = Rewritten(args)
        report |= {"passes": rewritten.report()} if args.passes else {}
        report |= {"plan": rewritten.plan()} if args.plan else {}
    if args.json:
        if args.ops:
            report["listing"] = [[str(op) for op in block.ops] for block in program.blocks]
        print_json(report)
    else:
        _print_all(report, program, manager, args)
    return FINDING if report["missing_ops"] else OK


def _print_all(report: dict[str, Any], program: Program, manager: PackManager, args: argparse.Namespace) -> None:
    """The report, and what the options ask for besides."""
    _print(report)
    if args.ops:
        _print_ops(program)
    if "passes" in report:
        print_passes(report["passes"])
    if "plan" in report:
        print(f"\n{printable(report['plan'])}")
    _print_findings(report, manager)


def describe_model(program: Program, feeds: list[str], fetches: list[str], manager: PackManager) -> dict[str, Any]:
    """Everything about a model, as plain data.

    Args:
        program: Its program.
        feeds: Names of its inputs.
        fetches: Names of its outputs.
        manager: Knows the packs that bring its ops.

    Returns:
        Inputs, outputs, parameters, and ops with their packs.
    """
    from oprack.io.parameters import persistable_vars

    counts = Counter(op.type for block in program.blocks for op in block.ops)
    block = program.global_block()

    def variable(name: str) -> dict[str, Any]:
        var = block.find_var_recursive(name)
        if var is None:
            return {"name": name}
        return {"name": name, "dtype": var.dtype_name(), "shape": list(var.shape or ()), "lod_level": var.lod_level}

    known = {t: manager.has_op(t) for t in counts}
    parameters = persistable_vars(program)
    return {
        "version": program.desc.version,
        "blocks": len(program.blocks),
        "ops": sum(counts.values()),
        "parameters": len(parameters),
        "parameter_bytes": sum(map(_bytes, parameters)),
        "inputs": [variable(n) for n in feeds],
        "outputs": [variable(n) for n in fetches],
        "op_types": [
            {"op": t, "count": n, "pack": manager.owner(t) if known[t] else None} for t, n in sorted(counts.items())
        ],
        "missing_ops": sorted(t for t in counts if not known[t]),
        "newer_ops": [
            {"op": t, "saved_with": saved, "installed": installed}
            for t, (saved, installed) in manager.newer_ops(counts, program.desc.op_version_map).items()
        ],
    }


def _bytes(var: VarDesc) -> int:
    """Bytes that the dims of a parameter stand for; 0 when one is open."""
    from oprack.tensor import numpy_dtype
    from oprack.types import DTYPE_NAMES

    if var.shape is None or var.dtype not in DTYPE_NAMES or any(d < 0 for d in var.shape):
        return 0
    return math.prod(var.shape) * numpy_dtype(var.dtype).itemsize


def _print(report: dict[str, Any]) -> None:
    version = report["version"]
    numbers = f"{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}"
    saved = f"in the format of Paddle {numbers}" if version else "no version"
    size = f"{_number(report['parameters'], 'parameter')} of {_size(report['parameter_bytes'])}"
    print(f"{_number(report['ops'], 'op')} in {_number(report['blocks'], 'block')}, {size}, {saved}\n")
    rows = [
        (what, v["name"], v.get("dtype") or "?", v.get("shape", "?"), v.get("lod_level", "?"))
        for what, found in (("input", report["inputs"]), ("output", report["outputs"]))
        for v in found
    ]
    if rows:
        print_table(("", "VARIABLE", "DTYPE", "SHAPE", "LOD LEVELS"), rows)
    else:
        print("no inputs and no outputs: the program has neither feed nor fetch ops")
    print()
    print_table(("OP", "COUNT", "PACK"), [(r["op"], r["count"], r["pack"] or "MISSING") for r in report["op_types"]])


def _number(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _size(count: int) -> str:
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return _number(count, "byte")


def _print_ops(program: Program) -> None:
    for block in program.blocks:
        print(f"\nblock {block.idx}" + (f", inside block {block.parent_idx}" if block.parent_idx >= 0 else "") + ":")
        width = len(str(max(0, len(block.ops) - 1)))
        for i, op in enumerate(block.ops):
            print(f"  {i:>{width}}  {printable(str(op))}")


def _print_findings(report: dict[str, Any], manager: PackManager) -> None:
    from oprack.errors import MissingPackError

    for r in report["newer_ops"]:
        versions = f"saved with version {r['saved_with']}, its pack knows {r['installed']}"
        print(f"\nop {printable(r['op'])}: {versions}; upgrade the pack")
    try:
        manager.require_ops(report["missing_ops"])
    except MissingPackError as e:
        print(f"\n{printable(str(e))}")


class Rewritten:
    """A loaded model, and what the passes for inference at the CPU made of it."""

    def __init__(self, args: argparse.Namespace) -> None:
        from oprack.io.inference_model import load_inference_model, optimize_model
        from oprack.runtime import Executor
        from oprack.tensor import Scope

        path, model_filename, params = model_arguments(args)
        self.scope: Scope = Scope()
        model = load_inference_model(path, self.scope, model_filename=model_filename, params_filename=params)
        self.executor = Executor(manager=manager_of(args))
        self.feeds, self.fetches = model.feed_names, model.fetch_names
        self._args = args
        self.optimized: Optimized = optimize_model(model, self.scope, self.executor)[1]

    def report(self) -> list[dict[str, Any]]:
        """One record per pass, in the order in which they ran."""
        return pass_records(self.optimized, self.executor.manager)

    def plan(self) -> str:
        """The code that the rewritten program runs as, after one run with the --feed files.

        Raises FeedError of several kinds when they do not fit.
        """
        feed = read_feeds(self._args.feed, self._args.lod, self.feeds)
        program = self.optimized.program
        self.executor.run(program, feed, self.fetches, self.scope, return_numpy=False)
        return self.executor.prepare(program).block(0).plan(self.fetches).source()


def pass_records(optimized: Optimized, manager: PackManager) -> list[dict[str, Any]]:
    """What passes did to a model, as plain data.

    Args:
        optimized: What they left.
        manager: The packs that brought them.

    Returns:
        One record per pass, in the order in which they ran.
    """
    from oprack.ir import registered_passes

    passes = {p.name: p for p in registered_passes(manager)}
    return [
        {
            "pass": r.name,
            "pack": r.owner,
            "matches": r.matches,
            "ops_before": r.ops_before,
            "ops_after": r.ops_after,
            "stage": passes[r.name].stage,
            "strict": not passes[r.name].reorders_sums,
            "milliseconds": round(r.milliseconds, 3),
            "error": r.error,
        }
        for r in optimized.reports
    ]


def print_passes(rows: list[dict[str, Any]]) -> None:
    """A table of what `Rewritten.report` says, and the sum of it."""
    print()
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
