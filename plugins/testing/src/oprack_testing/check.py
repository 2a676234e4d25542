"""oprack check PATH [PATH ...] [--only PARTS] [--update] [--allow-breaking] [--fuzz SECONDS] [--json]"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oprack.cli.main import FINDING, OK
from oprack.cli.output import add_json, print_json, track, working
from oprack.errors import did_you_mean

if TYPE_CHECKING:
    from oprack.testing.review.subject import Finding

    from oprack_testing.compatibility import Change

# Part of the review in oprack.testing.review -> what it looks at
PARTS = {
    "manifest": "ops.toml is what `oprack manifest` would write",
    "strings": "every string names something, those of passes included",
    "docs": "documentation of ops, slots and attributes, with a formula",
    "shapes": "shape rules with dims that are not known when a program is built",
    "gradients": "every op has a gradient or says that it has none, and a case checks it",
    "kernels": "cases give what they expect on all paths, and kernels run with every dtype that they declare",
    "splitting": "rules of splitting: each signature on 2 and 3 ranks against the whole, gradients too",
    "generated": "generated calls give the same on every path",
    "bridges": "torch's and jax's checks of the ops, where oprack-torch or oprack-jax is installed with its framework",
    "wheel": "what the wheel contains and declares",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="project directory of a pack")
    parser.add_argument(
        "--only",
        metavar="PART[,PART]",
        help="only these parts; signatures: what the last release promised, by ops.lock.json; "
        + "; ".join(f"{part}: {what}" for part, what in PARTS.items()),
    )
    parser.add_argument("--update", action="store_true", help="write the snapshot, to be done with each release")
    parser.add_argument("--allow-breaking", action="store_true", help="with --update: write it though ops break")
    parser.add_argument(
        "--fuzz",
        type=float,
        metavar="SECONDS",
        help="also compare all paths on generated calls of the pack's ops, which must be installed (docs/fuzzing.md); "
        "alone, without the other parts",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    reports = []
    _check_fuzz(args)
    for path in args.paths:
        reports.append(_report(path, args))
    if args.json:
        found = [{k: v for k, v in report.items() if k != "lines"} for report in reports]
        print_json(found[0] if len(found) == 1 else found)
    else:
        print("\n".join(line for report in reports for line in report["lines"]))
    return OK if all(report["ok"] for report in reports) else FINDING


def _check_fuzz(args: argparse.Namespace) -> None:
    from oprack.errors import InvalidArgumentError

    if args.fuzz is not None and not 0 < args.fuzz < float("inf"):
        raise InvalidArgumentError(f"--fuzz {args.fuzz:g}: expected a number of seconds above 0, such as --fuzz 30")


def _parts(args: argparse.Namespace) -> list[str]:
    """The parts that were asked for; a new snapshot asks for no review."""
    from oprack.errors import InvalidArgumentError

    if args.only is None:
        return ["signatures"] if args.update or args.fuzz is not None else ["signatures", *PARTS]
    chosen = [part.strip() for part in args.only.split(",")]
    for part in chosen:
        if part not in ("signatures", *PARTS):
            near = did_you_mean(part, ["signatures", *PARTS])
            raise InvalidArgumentError(
                f"--only {args.only}: no part is {part!r}{near}; expected signatures, {', '.join(PARTS)}"
            )
    return chosen


def _report(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """What is to be said about one pack, as lines and for JSON."""
    parts = _parts(args)
    found = _review(path, [part for part in parts if part != "signatures"])
    compared: dict[str, Any] = _compared(path, args) if "signatures" in parts or args.update else {"ok": True}
    failures = [] if args.fuzz is None else list(_fuzz(path, args.fuzz, quiet=args.json).failures)
    problems = [f for f in found if not f.note]
    lines = [line for f in found for line in _finding(f)] + compared.get("lines", [])
    if len(parts) > 1:
        count = len(problems) + len(failures) + compared.get("problems", 0)
        lines.append(f"{path}: {count} problem(s), {len(found) - len(problems)} note(s) in {', '.join(parts)}")
    return {
        **{k: v for k, v in compared.items() if k != "problems"},
        "fuzz": list(map(_failure, failures)),
        "findings": [asdict(f) for f in found],
        "ok": compared["ok"] and not problems and not failures,
        "lines": lines,
    }


def _review(path: Path, parts: Sequence[str]) -> list[Finding]:
    if not parts:
        return []
    from oprack.testing.review import findings, subject_of

    with contextlib.ExitStack() as stack:
        with working(f"{path}: reading"):
            subject = stack.enter_context(subject_of(path))
        subject.each = lambda items, what: track(items, f"{path}: {what}")
        return list(findings(subject, parts))


def _finding(found: Finding) -> list[str]:
    fix = found.fix.splitlines()
    kind = "note" if found.note else "PROBLEM"
    return [f"{kind:<8} {found.part}: {found.text}", f"         {fix[0]}", *fix[1:]]


def _compared(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """What the pack's ops promise, compared with its last release."""

    with working(f"{path}: signatures"):
        return _signatures(path, args)


def _signatures(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    from oprack.testing.review.pack_source import find_source

    from oprack_testing import compatibility

    source = find_source(path)
    target = source.root / compatibility.FILENAME
    now = compatibility.signatures(source)
    then = compatibility.read(target) if target.is_file() else None
    changes = compatibility.compare(then or {}, now)
    breaking = any(c.breaking for c in changes)
    written = args.update and (not breaking or args.allow_breaking)
    if written:
        compatibility.write(target, now)
    unreleased = then is None and not written
    if unreleased:
        lines = [f"{target}: there is no snapshot of the released ops; write it with `oprack check {path} --update`"]
    else:
        lines = _lines(target, len(now), [] if then is None else changes, written)
    return {
        "snapshot": str(target) if target.is_file() else None,
        "changes": [{"op": c.op_type, "breaking": c.breaking, "change": c.text} for c in changes],
        "problems": unreleased + (sum(c.breaking for c in changes) if breaking and not written else 0),
        "ok": not (unreleased or (breaking and not written)),
        "lines": lines,
    }


def _failure(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: found[key] for key in ("ops", "path", "kind", "failure", "file")}


def _line(change: Change) -> str:
    return ("BREAKING  " if change.breaking else "new       ") + f"{change.op_type}: {change.text}"


def _lines(target: Path, count: int, changes: Sequence[Change], written: bool) -> list[str]:
    breaking = sum(c.breaking for c in changes)
    lines = list(map(_line, changes))
    lines += [f"{count} ops compared with {target.name}: {breaking} breaking, {len(changes) - breaking} new"]
    if written:
        lines.append(f"{target}: written")
    elif breaking:
        lines.append(
            "Keep old slots and attributes, make new ones dispensable or give them defaults, and add a checkpoint. "
            "Where no release has these ops yet, `oprack check --update --allow-breaking` takes them as they are."
        )
    return lines


def _fuzz(path: Path, seconds: float, quiet: bool) -> Any:
    """Fuzz the installed ops of a project, from the cases of its conformance suite."""
    import random

    from oprack.errors import InvalidArgumentError, PreconditionNotMetError
    from oprack.packs.manager import default_manager
    from oprack.testing.fuzz.campaign import Campaign
    from oprack.testing.fuzz.examples.strategies import hypothesis
    from oprack.testing.review import subject_of

    hypothesis()
    with working(f"{path}: reading"), subject_of(path) as subject:
        op_types, folders, records = subject.ops, subject.case_folders, subject.case_folder
    manager = default_manager()
    targets = [f"op {t}" for t in op_types if manager.has_op(t) and "cpu" in manager.place_kinds(t)]
    if not targets:
        raise InvalidArgumentError(
            f"--fuzz: of the {len(op_types)} ops of {path} none is installed with a kernel for the CPU, and the fuzzer "
            f"runs installed ops, in processes of its own; `pip install -e {path}` installs them"
        )
    seed = random.SystemRandom().randrange(1 << 30)
    say = (lambda text: None) if quiet else print
    say(f"fuzzing {len(targets)} ops for {seconds:g} s, seed {seed}")
    held = [records] if records.is_dir() else []
    campaign = Campaign(targets, seed, seconds, Path("out/fuzz"), folders, held, examples=20, say=say)
    campaign.run()
    say(campaign.summary())
    if not campaign.tally.examples:
        raise PreconditionNotMetError(
            f"--fuzz {seconds:g}: the time was up before the first call was tried; give it more, as --fuzz "
            f"{max(30, 4 * seconds):g}"
        )
    return campaign
