"""oprack show MODEL [--json] [--ops]"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from oprack.cli.main import FINDING, OK
from oprack.cli.output import add_block, add_json, add_model, manager_of, model_arguments, print_json, print_table
from oprack.python.text import printable

if TYPE_CHECKING:
    from pathlib import Path

    from oprack.desc import VarDesc
    from oprack.packs.manager import PackManager
    from oprack.program import Program


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--ops", action="store_true", help="list every op, block by block")
    add_json(parser)
    add_block(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from oprack.io.inference_model import load_program

    path, model_filename, params = model_arguments(args)
    program, feeds, fetches = load_program(path, model_filename=model_filename)
    manager = manager_of(args)
    report = describe_model(program, feeds, fetches, manager)
    report["parameter_problem"] = parameter_problem(program, path, model_filename, params)
    if args.json:
        if args.ops:
            report["listing"] = [[str(op) for op in block.ops] for block in program.blocks]
        print_json(report)
    else:
        _print(report)
        if args.ops:
            _print_ops(program)
        _print_findings(report, manager)
    return FINDING if report["missing_ops"] or report["parameter_problem"] else OK


def parameter_problem(program: Program, path: Path, model_filename: str | None, params: str | None) -> str:
    """What is wrong with the parameter files of a model; "" for nothing.

    Args:
        program: Its program.
        path: Where the model is; and the names, as `model_arguments` gives them.
        model_filename: Name of the program file.
        params: Name of the parameter file.
    """
    from oprack.errors import ModelError
    from oprack.io.inference_model import check_parameters

    try:
        check_parameters(path, program, model_filename=model_filename, params_filename=params)
    except (ModelError, OSError) as error:
        return str(error)
    return ""


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
        "missing_from": {t: list(s) for t, s in sorted(program.desc.op_sources.items()) if not known.get(t, True)},
        "newer_ops": [
            {"op": t, "saved_with": saved, "installed": manager.op_version(t)}
            for t, saved in sorted(program.desc.op_version_map.items())
            if t in counts and known[t] and saved > manager.op_version(t)
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
    if report["parameter_problem"]:
        print(f"\nthe model can't run: {printable(report['parameter_problem'])}")
    try:
        sources = {t: (distribution, version) for t, (distribution, version) in report["missing_from"].items()}
        manager.require_ops(report["missing_ops"], sources=sources)
    except MissingPackError as e:
        print(f"\n{printable(str(e))}")
