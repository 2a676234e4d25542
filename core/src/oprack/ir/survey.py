"""What can be said of the installed passes without a program: `oprack doctor --imports` asks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from oprack.errors import OprackError, did_you_mean
from oprack.ir.driver import Fusion, Fusions
from oprack.ir.passes import Pass, registered_passes
from oprack.ir.pattern import EitherPattern, MaybePattern, OpPattern, Pattern

if TYPE_CHECKING:
    from oprack.packs.manager import PackManager

# As near as this, a name that nobody brings is taken for a misspelt one, and not for that of a pack not installed.
_CUTOFF = 0.85


@dataclass
class Survey:
    """problems: what can't be right. notes: what is right only if a pack is meant that is not installed."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def unknown(self, text: str, name: str, known: list[str], rest: str) -> None:
        """A name that no installed pack brings: a problem when one that is like it is brought, else a note."""
        near = did_you_mean(name, known, _CUTOFF)
        (self.problems if near else self.notes).append(f"{text}{near or rest}")


def survey_passes(manager: PackManager) -> Survey:
    """Import every pass, and compare the patterns of fusions with the OpProtos of the installed ops."""
    found = Survey()
    try:
        passes = registered_passes(manager)
    except OprackError as error:
        return Survey([f"passes: {error}"])
    names = [p.name for p in passes]
    stages = {p.name: p.stage for p in passes}
    for one in passes:
        who = f"pass {one.name} of {one.owner}"
        for option in ("after", "before"):
            for name in getattr(one, option):
                stage = stages.get(name, one.stage)
                if one.stage and stage and stage != one.stage:
                    found.problems.append(
                        f"{who}: {option}={name!r} names a pass of stage {stage!r}, but it is of stage {one.stage!r}; "
                        "stages order themselves, so leave the name out"
                    )
                if name not in names:
                    rest = "; right if it is of a pack that is not installed"
                    found.unknown(f"{who}: {option}={name!r} names no installed pass", name, names, rest)
        try:
            target = one.load()
        except OprackError as error:
            found.problems.append(str(error))
            continue
        if not callable(target):
            found.problems.append(f"{who}: {one.target!r} is {target!r}; expected a function or a fusion")
        _survey_fusions(one, target, manager, found)
    return found


def _survey_fusions(one: Pass, target: object, manager: PackManager, found: Survey) -> None:
    rows = target.rows if isinstance(target, Fusions) else [target] if isinstance(target, Fusion) else []
    for row in rows:
        for pattern in dict.fromkeys(_op_patterns(row.pattern)):
            who = f"pass {one.name} of {one.owner}, pattern at {pattern.line}"
            for op_type in pattern.types:
                if manager.has_op(op_type):
                    _survey_op(f"{who}: op {op_type}", op_type, pattern, manager, found)
                else:
                    rest = ", so the pattern matches nothing until a pack brings it"
                    found.unknown(f"{who}: no installed op is {op_type!r}", op_type, manager.op_types(), rest)


def _op_patterns(pattern: Pattern) -> Iterator[OpPattern]:
    waiting: list[Pattern] = [pattern]
    while waiting:
        one = waiting.pop()
        if isinstance(one, OpPattern):
            yield one
            waiting += [p for patterns in one.slots.values() for p in patterns]
        elif isinstance(one, MaybePattern):
            waiting += [one.pattern, one.inner]
        elif isinstance(one, EitherPattern):
            waiting += one.patterns


def _survey_op(who: str, op_type: str, pattern: OpPattern, manager: PackManager, found: Survey) -> None:
    """How an op pattern contradicts the OpProto, so that it can never match an op of that type."""
    try:
        proto = manager.op_info(op_type).proto
    except OprackError:
        return  # said of the op
    outputs = [*pattern.unchanged, *([pattern.out] if pattern.out else [])]
    asked = (
        ("input", [s for s, ps in pattern.slots.items() if not all(p.optional for p in ps)], proto.inputs),
        ("output", outputs, proto.outputs),
        ("attribute", list(pattern.attrs), proto.attrs),
    )
    for what, names, known in asked:
        for name in names:
            if name not in known:
                near = did_you_mean(name, known)
                found.problems.append(f"{who} has no {what} {name!r}{near}; it has {', '.join(known) or 'none'}")
    for slot, declared in proto.inputs.items():
        if not declared.dispensable and slot not in pattern.slots:
            found.problems.append(f"{who} needs input {slot!r}, which the pattern does not name, so it matches nothing")
