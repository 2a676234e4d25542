"""oprack show MODEL [--json] [--graph OUT.svg]"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.cli.main import FINDING, OK
from oprack.cli.models import add_model, model_arguments
from oprack.cli.output import add_block, add_json, manager_of, print_json, print_table

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager
    from oprack.program import Program


def configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--graph", metavar="OUT.svg", help="draw the ops of block 0 and their variables")
    parser.add_argument("--ops", action="store_true", help="list every op, block by block")
    add_json(parser)
    add_block(parser)


def run(args: argparse.Namespace) -> int:
    from oprack.io.inference_model import load_program

    path, model_filename, _ = model_arguments(args)
    program, feeds, fetches = load_program(path, model_filename=model_filename)
    manager = manager_of(args)
    report = _report(program, feeds, fetches, manager)
    if args.json:
        print_json(report)
    else:
        _print(report, program if args.ops else None)
    if args.graph:
        from oprack.cli.graph_svg import draw_block
        from oprack.io.atomic import write_atomic

        write_atomic(Path(args.graph), draw_block(program.global_block()).encode())
        if not args.json:
            print(f"\ngraph of block 0: {args.graph}")
    return FINDING if report["missing_ops"] else OK


def _report(program: Program, feeds: list[str], fetches: list[str], manager: PackManager) -> dict[str, Any]:
    counts = Counter(op.type for block in program.blocks for op in block.ops)
    block = program.global_block()

    def variable(name: str) -> dict[str, Any]:
        var = block.find_var_recursive(name)
        if var is None:
            return {"name": name}
        return {"name": name, "dtype": var.dtype_name(), "shape": list(var.shape or ()), "lod_level": var.lod_level}

    known = {t: manager.has_op(t) for t in counts}
    persistable = [v for v in program.list_vars() if v.persistable and v.name not in ("feed", "fetch")]
    return {
        "version": program.desc.version,
        "blocks": len(program.blocks),
        "ops": sum(counts.values()),
        "parameters": len(persistable),
        "inputs": [variable(n) for n in feeds],
        "outputs": [variable(n) for n in fetches],
        "op_types": [
            {"op": t, "count": n, "pack": manager.owner(t) if known[t] else None} for t, n in sorted(counts.items())
        ],
        "missing_ops": sorted(t for t in counts if not known[t]),
        "newer_ops": _newer(program, manager, known),
    }


def _newer(program: Program, manager: PackManager, known: dict[str, bool]) -> list[dict[str, Any]]:
    """Ops that the program was saved with in a newer version than the installed pack knows."""
    return [
        {"op": t, "saved_with": v, "installed": manager.op_version(t)}
        for t, v in sorted(program.desc.op_version_map.items())
        if known.get(t) and v > manager.op_version(t)
    ]


def _print(report: dict[str, Any], listed: Program | None) -> None:
    version = report["version"]
    numbers = f"{version // 1_000_000}.{version // 1000 % 1000}.{version % 1000}"
    saved = f"saved by version {numbers}" if version else "no version"
    print(f"{report['ops']} ops in {report['blocks']} block(s), {report['parameters']} parameters, {saved}\n")
    rows = [
        (what, v["name"], v.get("dtype") or "", v.get("shape", ""), v.get("lod_level", ""))
        for what, found in (("input", report["inputs"]), ("output", report["outputs"]))
        for v in found
    ]
    print_table(("", "VARIABLE", "DTYPE", "SHAPE", "LOD"), rows)
    print()
    print_table(("OP", "COUNT", "PACK"), [(r["op"], r["count"], r["pack"] or "MISSING") for r in report["op_types"]])
    if listed is not None:
        print(f"\n{listed}")
    for r in report["newer_ops"]:
        print(f"\n{r['op']}: saved with version {r['saved_with']}, the pack knows {r['installed']}; upgrade the pack")
    if report["missing_ops"]:
        print(f"\nno installed pack brings {', '.join(report['missing_ops'])}; install one, or see `oprack packs`")
