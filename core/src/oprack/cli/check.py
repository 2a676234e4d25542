"""oprack check PATH [PATH ...] [--update] [--allow-breaking] [--fuzz SECONDS] [--json]"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oprack.cli.main import FINDING, OK
from oprack.cli.output import add_json, print_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="project directory of a pack")
    parser.add_argument("--update", action="store_true", help="write the snapshot, to be done with each release")
    parser.add_argument("--allow-breaking", action="store_true", help="with --update: write it though ops break")
    parser.add_argument(
        "--fuzz",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="also compare all paths on generated calls of the pack's ops, which must be installed (docs/fuzzing.md)",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    reports = [_report(path, args) for path in args.paths]
    if args.json:
        found = [{k: v for k, v in report.items() if k != "lines"} for report in reports]
        print_json(found[0] if len(found) == 1 else found)
    else:
        print("\n".join(line for report in reports for line in report["lines"]))
    return OK if all(report["ok"] for report in reports) else FINDING


def _report(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """What is to be said about one pack, as lines and for JSON."""
    from oprack.packs import compatibility
    from oprack.packs.generate import find_source

    source = find_source(path)
    target = source.root / compatibility.FILENAME
    now = compatibility.signatures(source)
    then = compatibility.read(target) if target.is_file() else None
    changes = compatibility.compare(then or {}, now)
    breaking = [c for c in changes if c.breaking]
    written = args.update and (not breaking or args.allow_breaking)
    if written:
        compatibility.write(target, now)
    failed = (bool(breaking) or then is None) and not written
    fuzzed = _fuzz(path, now, args.fuzz, quiet=args.json) if args.fuzz else None
    failed = failed or bool(fuzzed and fuzzed.failures)
    lines = []
    if then is None and not written:
        lines = [f"{target}: there is no snapshot of the released ops; write it with `oprack check {path} --update`"]
    else:
        for change in changes if then is not None else ():
            lines.append(("BREAKING  " if change.breaking else "new       ") + f"{change.op_type}: {change.text}")
        fresh = len(changes) - len(breaking)
        lines.append(f"{len(now)} ops compared with {target.name}: {len(breaking)} breaking, {fresh} new")
        if written:
            lines.append(f"{target}: written")
        elif breaking:
            lines.append(
                "Keep old slots and attributes, make new ones dispensable or give them defaults, and add a checkpoint."
            )
    rows = [{"op": c.op_type, "breaking": c.breaking, "change": c.text} for c in changes]
    found = [{k: f[k] for k in ("ops", "path", "kind", "failure", "file")} for f in fuzzed.failures] if fuzzed else []
    snapshot = str(target) if target.is_file() else None
    return {"snapshot": snapshot, "changes": rows, "fuzz": found, "ok": not failed, "lines": lines}


def _fuzz(path: Path, op_types: Iterable[str], seconds: float, quiet: bool) -> Any:
    """Fuzz the installed ops of a project, from the case files and recorded cases below its directory `tests`."""
    import random

    from oprack.packs.manager import default_manager
    from oprack.testing.fuzz.campaign import Campaign
    from oprack.testing.fuzz.strategies import hypothesis

    hypothesis()
    manager = default_manager()
    targets = [f"op {t}" for t in sorted(op_types) if manager.has_op(t) and "cpu" in manager.place_kinds(t)]
    seed = random.SystemRandom().randrange(1 << 30)
    say = (lambda text: None) if quiet else print
    say(f"fuzzing {len(targets)} ops for {seconds:g} s, seed {seed}")
    tests = path / "tests"
    records = [f for f in [tests / "cases"] if f.is_dir()]
    campaign = Campaign(targets, seed, seconds, Path("out/fuzz"), [tests], records, examples=20, say=say)
    if targets:
        campaign.run()
        say(campaign.summary())
    return campaign
