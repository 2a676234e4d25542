"""Run torch's and jax's own checks on the cases of all packs, and write docs/bridged_ops.md.

    python tests/bridges/run.py [OP ...] [--only torch|jax]

known.toml says which ops may not pass, each with its reason. Another one that does not pass is an error, as is one that
is listed there and passes. With names of ops, what was found is printed and nothing is written.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "bridged_ops.md"
KNOWN = Path(__file__).with_name("known.toml")
FRAMEWORKS = ("torch", "jax")
NO_CASE = "no case has dense tensors alone"
LEAST = {"torch": 0.95, "jax": 0.90}

Row = tuple[str, str, str]


def check(framework: str, ops: Sequence[str], part: int = 0, parts: int = 1) -> Iterator[Row]:
    """What the checks of a framework find: (op, checks that could be run, problem)."""
    from oprack.bridge import bridged_ops
    from oprack.testing import collect_cases
    from oprack.testing.fuzz.examples.calls import recorded

    check_op = importlib.import_module(f"oprack_{framework}.checking").check_op
    records = [c for f in sorted(ROOT.glob("op_packages/*/tests/cases")) for c in collect_cases(f)]
    for op_type in ops or list(bridged_ops())[part::parts]:
        calls = recorded(op_type, [ROOT / "tests" / "data" / "cases"], records, most=6)
        try:
            yield tuple(check_op(op_type, calls))
        except Exception as error:  # whatever a framework raises
            yield op_type, "", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _found(framework: str) -> list[Row]:
    """What two processes find in all ops."""
    command = [sys.executable, __file__, "--only", framework, "--part"]
    jobs = [subprocess.Popen([*command, f"{i}/2"], stdout=subprocess.PIPE, text=True, cwd=ROOT) for i in range(2)]
    lines = [line for job in jobs for line in job.communicate()[0].splitlines() if line.startswith("[")]
    if any(job.returncode for job in jobs):
        raise SystemExit(f"the checks of {framework} ended early; run {' '.join(command)} 0/2 to see why")
    return sorted(tuple(json.loads(line)) for line in lines)


def judge(framework: str, rows: Sequence[Row], known: dict[str, str]) -> list[str]:
    """What is wrong with what was found."""
    failed = {op: problem for op, _, problem in rows if problem not in ("", NO_CASE)}
    passed = {op for op, _, problem in rows if not problem}
    wrong = [
        f"{framework}: {op} does not pass, and known.toml has no reason: {failed[op]}" for op in failed.keys() - known
    ]
    wrong += [f"{framework}: {op} passes, so take it out of known.toml" for op in known if op in passed]
    share = len(passed) / (len(passed) + len(failed))
    if share < LEAST[framework]:
        wrong.append(f"{framework}: {share:.1%} of the ops pass; expected {LEAST[framework]:.0%}")
    return sorted(wrong)


def page(found: dict[str, list[Row]], known: dict[str, dict[str, str]]) -> str:
    """The text of the page."""
    lines = [
        "# Ops in other frameworks, one by one",
        "",
        "Written by `make bridges`, of the cases of all packs: up to two of each op that have dense tensors without",
        "LoD, at double precision. [bridges.md](bridges.md) says how ops get there.",
        "",
        f"| | torch {version('torch').partition('+')[0]} | jax {version('jax')} |",
        "| --- | --- | --- |",
    ]
    counts = {f: _counts(rows) for f, rows in found.items()}
    for name in ("ops with such cases", "pass", "of these with gradients compared", "do not pass"):
        lines.append(f"| {name} | {' | '.join(counts[f][name] for f in FRAMEWORKS)} |")
    lines += [
        "",
        "For torch that is `torch.library.opcheck` (schema, fake tensors, dynamic sizes by AOTAutograd) and",
    ]
    lines += [
        "`torch.autograd.gradcheck`; for jax `eval_shape` and `jit` beside the call, and `jax.test_util.check_grads`."
    ]
    lines += ["Gradients are compared where a case lies at no kink."]
    for f in FRAMEWORKS:
        failed = [op for op, _, problem in found[f] if problem not in ("", NO_CASE)]
        lines += ["", f"## What does not pass in {f}", "", "| op | why |", "| --- | --- |"]
        lines += [f"| `{op}` | {known[f].get(op, '?')} |" for op in failed]
    return "\n".join(lines) + "\n"


def _counts(rows: Sequence[Row]) -> dict[str, str]:
    passed = [checks for _, checks, problem in rows if not problem]
    failed = sum(problem not in ("", NO_CASE) for _, _, problem in rows)
    dense = len(passed) + failed
    return {
        "ops with such cases": str(dense),
        "pass": f"{len(passed)} ({len(passed) / dense:.1%})",
        "of these with gradients compared": str(sum("grad" in c for c in passed)),
        "do not pass": str(failed),
    }


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Check ops of all packs in other frameworks.")
    parser.add_argument("ops", nargs="*")
    parser.add_argument("--only", choices=FRAMEWORKS)
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part or options.ops:
        part, parts = map(int, (options.part or "0/1").split("/"))
        for framework in [options.only] if options.only else FRAMEWORKS:
            for row in check(framework, options.ops, part, parts):
                print(json.dumps(row), flush=True)
        return 0
    known = tomllib.loads(KNOWN.read_text("utf-8"))
    found = {f: _found(f) for f in ([options.only] if options.only else FRAMEWORKS)}
    wrong = [text for f, rows in found.items() for text in judge(f, rows, known[f])]
    for f, rows in found.items():
        print(f, _counts(rows))
    if not options.only:
        PAGE.write_text(page(found, known), "utf-8")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
