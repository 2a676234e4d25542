"""Calls that nobody chose: every path gives what the reference path gives, or refuses what it refuses."""

from __future__ import annotations

from collections.abc import Iterator

from oprack.errors import PreconditionNotMetError
from oprack.testing.review.subject import Finding, Subject

EXAMPLES = 10
"""Generated calls of each op."""


def review(subject: Subject) -> Iterator[Finding]:
    """Search a few calls of each op that has cases; `oprack check --fuzz SECONDS` goes on for longer."""
    try:
        from oprack.testing.fuzz import Checker, op_examples, read_known, script, search
        from oprack.testing.fuzz.examples.strategies import hypothesis

        hypothesis()
    except (ImportError, PreconditionNotMetError):
        text = "generated calls were not tried, since hypothesis is not installed"
        yield Finding("generated", text, "pip install hypothesis", note=True)
        return
    known = [row for suite in subject.suites if suite.fuzz_known for row in read_known(suite.fuzz_known)]
    checker, seen = Checker(subject.manager), set[str]()
    for op_type in subject.each(subject.ops, "generated calls"):
        calls = subject.calls_of(op_type) if "cpu" in subject.manager.place_kinds(op_type) else []
        if not calls:
            continue
        examples = op_examples(calls, subject.manager)
        found = search(examples, checker, seed=0, examples=EXAMPLES, shrink_seconds=5.0, known=known)
        # one defect, as of a pass, shows in many ops
        if found is not None and (told := str(found.difference)) not in seen:
            seen.add(told)
            yield Finding(
                "generated",
                f"op {op_type}: {found.difference}",
                "run this script, and make the paths agree or refuse such calls in infer_shape:\n"
                + script(found.example, found.difference),
            )
