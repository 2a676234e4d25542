"""Whether the pack's ops work in PyTorch and JAX, by these frameworks' own checks, where they are installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator

from oprack.testing.review.subject import Finding, Subject

FRAMEWORKS = {"torch": "torch.library.opcheck and gradcheck", "jax": "eval_shape, jit and check_grads"}
"""Frameworks for which there is a distribution oprack-<name>, and what is run of each."""


def review(subject: Subject) -> Iterator[Finding]:
    """Run the checks of each framework on the pack's cases; what is found are notes, as a pack need not serve all."""
    for framework, checks in FRAMEWORKS.items():
        if any(importlib.util.find_spec(name) is None for name in (framework, f"oprack_{framework}")):
            continue
        yield from _of_framework(subject, framework, checks)


def _of_framework(subject: Subject, framework: str, checks: str) -> Iterator[Finding]:
    from oprack.bridge import bridged_ops
    from oprack.testing.bridges import NO_CASE

    check_op = importlib.import_module(f"oprack_{framework}.checking").check_op
    known = set(bridged_ops())
    passed = 0
    for op_type in subject.each([t for t in subject.ops if t in known], framework):
        found = check_op(op_type, subject.calls_of(op_type))
        passed += not found.problem
        if found.problem and found.problem != NO_CASE:
            yield Finding(
                "bridges",
                f"{framework}: op {op_type} does not pass {checks}: {found.problem}",
                f"see docs/bridges.md for what {framework} asks of an op, or leave it where the op can't give that",
                note=True,
            )
    ok = "ok, " if passed else ""
    yield Finding("bridges", f"{framework}: {ok}{passed} ops pass {checks}", "nothing is to be done", note=True)
