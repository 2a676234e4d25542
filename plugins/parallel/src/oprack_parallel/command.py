"""oprack parallel simulate PROGRAM --ranks N [--grid data=128,tensor=8] | oprack parallel bench [-n N] [--out FILE]"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import runpy
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.cli.main import OK
from oprack.cli.output import add_json, print_json, working
from oprack.python.threads import cpus

if TYPE_CHECKING:
    from oprack.parallel.simulated import FakeWorld, Report


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    simulate = sub.add_parser("simulate", help="what a program would send, compute and hold on so many ranks")
    simulate.add_argument("--ranks", type=int, help="how many (default: as many as the grid has)")
    simulate.add_argument("--grid", default="", metavar="data=128,tensor=8", help="of placements that say no shape")
    simulate.add_argument("--rank", type=int, action="append", help="simulate this one (default: first, middle, last)")
    simulate.add_argument(
        "--links", default="", metavar="FILE", help="of `oprack parallel bench` (default: OPRACK_LINKS)"
    )
    simulate.add_argument(
        "--accelerator",
        default="",
        metavar="A100",
        help="what a rank computes with: V100, A100, H100, or flops=2e14,bandwidth=2e12 (default: no times of ops)",
    )
    simulate.add_argument("--steps", type=int, default=1, help="of the program, by which figures are divided")
    add_json(simulate)
    simulate.add_argument("program", help="a Python file, or module:function")
    simulate.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    bench = sub.add_parser("bench", help="measure what messages between ranks take here")
    bench.add_argument("-n", "--ranks", type=int, default=cpus(), help="how many (default: one a core)")
    bench.add_argument("--engine", default="", help="as for `oprack launch`")
    bench.add_argument("--hosts", default="", help="as for `oprack launch`")
    bench.add_argument("--axis", default="*", help="of grids, along which such messages go (default: all others)")
    bench.add_argument("--out", default="", metavar="FILE", help="written for OPRACK_LINKS and simulate --links")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    return _bench(args) if args.what == "bench" else _simulate(args)


def _bench(args: argparse.Namespace) -> int:
    from oprack.cli.main import main

    options = [f"--{name}={value}" for name, value in (("engine", args.engine), ("hosts", args.hosts)) if value]
    out = str(Path(args.out).absolute()) if args.out else ""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "bench.py"
        program.write_text(f"from oprack.parallel.bench import run\nrun({out!r}, {args.axis!r})\n")
        return main(["launch", "-n", str(args.ranks), *options, str(program)])


def _simulate(args: argparse.Namespace) -> int:
    from oprack.errors import InvalidArgumentError
    from oprack.parallel.costs import Accelerator
    from oprack.parallel.links import LINKS, Links
    from oprack.parallel.simulated import FakeWorld

    grid = _grid(args.grid)
    size = args.ranks or _product(grid.values())
    if (not args.ranks and not grid) or args.steps < 1:
        raise InvalidArgumentError("oprack parallel simulate: expected --ranks or --grid, and at least one step")
    path = args.links or os.environ.get(LINKS, "")
    accelerator = Accelerator.of(args.accelerator) if args.accelerator else None
    world = FakeWorld(size, grid or None, Links.read(path) if path else None, accelerator)
    chosen = args.rank if args.rank is not None else sorted({0, size // 2, size - 1})
    reports: list[Report] = []
    for rank in chosen:
        printed = io.StringIO()
        try:
            with working(f"simulating rank {rank} of {size}"), contextlib.redirect_stdout(printed):
                with world.rank(rank) as report:
                    _run_program(args.program, args.arguments)
        finally:
            # What it prints is printed once; its figures are NaN anyway.
            if not reports and not args.json:
                print(printed.getvalue(), end="")
        reports.append(report)
    if args.json:
        sums = ("flops", "moved", "compute_seconds", "seconds")
        print_json([_facts(r) | {name: getattr(r, name) for name in sums} for r in reports])
        return OK
    print("\n".join(_lines(world, reports, args.steps)))
    return OK


def _grid(text: str) -> dict[str, int]:
    from oprack.errors import InvalidArgumentError

    found = {}
    for side in text.split(",") if text else ():
        name, _, number = side.partition("=")
        if not name or not number.isdecimal() or int(number) < 1 or name in found:
            raise InvalidArgumentError(f"--grid {text}: expected names and sizes of axes, such as data=128,tensor=8")
        found[name] = int(number)
    return found


def _product(sizes: Any) -> int:
    total = 1
    for n in sizes:
        total *= n
    return total


def _run_program(program: str, arguments: Sequence[str]) -> None:
    from oprack.errors import NotFoundError

    module, _, function = program.partition(":")
    if function and module.replace(".", "").isidentifier():
        try:
            call = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError) as e:
            raise NotFoundError(f"oprack parallel simulate: {program!r}: {e}; expected module:function") from e
        call(*arguments)
        return
    if not Path(program).is_file():
        raise NotFoundError(f"oprack parallel simulate: no file {program!r}; expected a Python file or module:function")
    old = sys.argv
    sys.argv = [program, *arguments]
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        sys.argv = old


_SHOWN = 8
"""Sorts of ops that are listed by name."""


def _facts(report: Report) -> dict[str, Any]:
    return {k: v for k, v in asdict(report).items() if k != "result"}


def _lines(world: FakeWorld, reports: Sequence[Report], steps: int) -> list[str]:
    links = [f"{a} {link.latency * 1e6:g} us, {link.bandwidth / 1e9:g} GB/s" for a, link in world.links.axes.items()]
    other = world.links.other
    links.append(f"{'other axes' if links else 'all axes'} {other.latency * 1e6:g} us, {other.bandwidth / 1e9:g} GB/s")
    found = [f"{world.size} ranks; links: {'; '.join(links)}; figures are of one of {steps} steps"]
    known: list[Any] = []
    for r in reports:
        figures = (r.lines, r.work, r.peak)
        if figures in known:
            found.append(f"rank {r.rank}: as rank {reports[known.index(figures)].rank}")
            known.append(figures)
            continue
        known.append(figures)
        found.append(
            f"rank {r.rank}: products {r.flops / steps / 1e9:,.1f} GFLOP, {r.moved / steps / 2**20:,.1f} MiB read and "
            f"written, tensors of at most {r.peak / 2**20:,.1f} MiB"
        )
        if world.accelerator is not None:
            found += _ops(r, steps)
        if r.lines:
            found.append(f"    {'axis':<10}{'collective':<16}{'ranks':>6}{'calls':>8}{'MB sent':>12}{'ms':>12}")
        for n in r.lines:
            calls, moved, ms = n.count / steps, n.moved / steps / 1e6, n.seconds / steps * 1e3
            found.append(f"    {n.axis:<10}{n.collective:<16}{n.ranks:>6}{calls:>8g}{moved:>12,.2f}{ms:>12,.3f}")
        talk, work = r.seconds / steps * 1e3, r.compute_seconds / steps * 1e3
        if work:
            found.append(
                f"    ops {work:,.2f} ms, messages {talk:,.2f} ms: a step takes {max(work, talk):,.2f} ms if all "
                f"overlap, {work + talk:,.2f} ms if none do; of that, ops {work / max(work, talk):.0%} to "
                f"{work / (work + talk):.0%}"
            )
        else:
            found.append(f"    messages {talk:,.2f} ms, one after the other")
    return found


def _ops(report: Report, steps: int) -> list[str]:
    """The longest ops of a rank, and all others in one line."""
    rows = [(f"{w.op} {w.dtype}", w.count, w.flops, w.moved, w.seconds) for w in report.work[:_SHOWN]]
    rest = report.work[_SHOWN:]
    if rest:
        sums = [sum(getattr(w, name) for w in rest) for name in ("count", "flops", "moved", "seconds")]
        rows.append((f"{len(rest)} other sorts", sums[0], sums[1], sums[2], sums[3]))
    found = [f"    {'op':<32}{'calls':>8}{'GFLOP':>12}{'MB moved':>12}{'ms':>12}"]
    for name, count, flops, moved, seconds in rows:
        found.append(
            f"    {name:<32}{count / steps:>8g}{flops / steps / 1e9:>12,.2f}{moved / steps / 1e6:>12,.2f}"
            f"{seconds / steps * 1e3:>12,.3f}"
        )
    return found
