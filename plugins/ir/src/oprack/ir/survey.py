"""Checks the installed passes without a program, for `oprack doctor --imports`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from oprack.errors import OprackError, did_you_mean
from oprack.ir.driver import Fusion, Fusions
from oprack.ir.passes import Pass, registered_passes
from oprack.ir.pattern import EitherPattern, MaybePattern, OpPattern, Pattern
from oprack.packs.pack import PackWarning

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager

# An unknown name that is at least this similar to a known one counts as misspelt; any other may be that of a pack that
# is not installed.
_CUTOFF = 0.85


@dataclass
class Survey:
    """The result of a survey.

    Attributes:
        problems: What is certainly wrong.
        notes: What is right only if it refers to a pack that is not installed.
    """

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def unknown(self, text: str, name: str, known: list[str], rest: str) -> None:
        """Report a name that no installed pack brings: a problem if it is similar to a known one, otherwise a note."""
        suggestion = did_you_mean(name, known, _CUTOFF)
        (self.problems if suggestion else self.notes).append(f"{text}{suggestion or rest}")


def survey_passes(manager: PackManager) -> Survey:
    """Import every pass, and compare the patterns of fusions with the OpProtos of the installed ops."""
    survey = Survey()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PackWarning)
        passes = registered_passes(manager)
    survey.problems += [str(w.message) for w in caught if "circle" in str(w.message)]
    names = [p.name for p in passes]
    stages = {p.name: p.stage for p in passes}
    for pass_ in passes:
        subject = f"pass {pass_.name} of {pass_.owner}"
        for option in ("after", "before"):
            for name in getattr(pass_, option):
                stage = stages.get(name, pass_.stage)
                if pass_.stage and stage and stage != pass_.stage:
                    survey.problems.append(
                        f"{subject}: {option}={name!r} names a pass of stage {stage!r}, but it is of stage "
                        f"{pass_.stage!r}; stages order themselves, so leave the name out"
                    )
                if name not in names:
                    rest = "; right if it is of a pack that is not installed"
                    survey.unknown(f"{subject}: {option}={name!r} names no installed pass", name, names, rest)
        try:
            target = pass_.load()
        except OprackError as error:
            survey.problems.append(str(error))
            continue
        if not callable(target):
            survey.problems.append(f"{subject}: {pass_.target!r} is {target!r}; expected a function or a fusion")
        _survey_fusions(pass_, target, manager, survey)
    return survey


def _survey_fusions(pass_: Pass, target: object, manager: PackManager, survey: Survey) -> None:
    rows = target.rows if isinstance(target, Fusions) else [target] if isinstance(target, Fusion) else []
    for row in rows:
        for pattern in dict.fromkeys(_op_patterns(row.pattern)):
            subject = f"pass {pass_.name} of {pass_.owner}, pattern at {pattern.line}"
            for op_type in pattern.types:
                if manager.has_op(op_type):
                    _survey_op(f"{subject}: op {op_type}", op_type, pattern, manager, survey)
                else:
                    rest = ", so the pattern matches nothing until a pack brings it"
                    survey.unknown(f"{subject}: no installed op is {op_type!r}", op_type, manager.op_types(), rest)


def _op_patterns(pattern: Pattern) -> Iterator[OpPattern]:
    pending: list[Pattern] = [pattern]
    while pending:
        current = pending.pop()
        if isinstance(current, OpPattern):
            yield current
            pending += [p for patterns in current.slots.values() for p in patterns]
        elif isinstance(current, MaybePattern):
            pending += [current.pattern, current.inner]
        elif isinstance(current, EitherPattern):
            pending += current.patterns


def _survey_op(subject: str, op_type: str, pattern: OpPattern, manager: PackManager, survey: Survey) -> None:
    """Report contradictions between an op pattern and the OpProto, because of which it can never match such an op."""
    try:
        proto = manager.op_info(op_type).proto
    except OprackError:
        return  # The survey of ops reports it.
    outputs = [*pattern.unchanged, *([pattern.out] if pattern.out else [])]
    required = (
        ("input", [s for s, ps in pattern.slots.items() if not all(p.optional for p in ps)], proto.inputs),
        ("output", outputs, proto.outputs),
        ("attribute", list(pattern.attrs), proto.attrs),
    )
    for member, names, known in required:
        for name in names:
            if name not in known:
                suggestion = did_you_mean(name, known)
                survey.problems.append(
                    f"{subject} has no {member} {name!r}{suggestion}; it has {', '.join(known) or 'none'}"
                )
    for slot, declared in proto.inputs.items():
        if not declared.dispensable and slot not in pattern.slots:
            survey.problems.append(
                f"{subject} needs input {slot!r}, which the pattern does not name, so it matches nothing"
            )
