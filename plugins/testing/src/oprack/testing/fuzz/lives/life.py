"""Lives: sequences of actions on one net or program, compared after each with what a simpler engine makes of the same.

`Life` is one; `search_lives` draws lives until one differs, and makes it small. They are drawn by Python's generator:
Hypothesis varies what it has more than it draws anew, and lives that look alike find nothing more. An action is a class
of actions.py or programs.py, an engine a row of ENGINES: a third one of either is one entry.
"""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from oprack.packs.manager import default_manager
from oprack.testing.fuzz.lives import actions, programs, subjects
from oprack.testing.fuzz.lives.actions import Action
from oprack.testing.fuzz.runs.outcome import Difference, Outcome, attempt
from oprack.testing.fuzz.searching import Known

_STEPS = 12


@dataclass(frozen=True)
class Engine:
    """What is compared with what.

    Attributes:
        reference, subject: Classes, of which each life has one made of the kinds of its parts and the dtype.
        doing: The actions that they know.
        rtol: By dtype, relative to what is 1 at least.
        shown: Actions by which it shows what others did.
    """

    reference: Any
    subject: Any
    doing: Sequence[type[Action]]
    rtol: dict[str, float] = field(default_factory=lambda: {"float64": 1e-7, "float32": 1e-3})
    shown: Sequence[Action] = (actions.CallNet(), actions.Backward(), actions.Step())


_CALLING = actions.CALLING
_JITTED = (*_CALLING, actions.Hook, *actions.AT_ONCE)
_EXPORTING = (*_CALLING, actions.Hook, *actions.EXPORTING)
_RUNS = (programs.Run(), programs.Run(), programs.Run(fails=3))
_EXPORTED = (actions.Export(open_dims=True), actions.Infer(rows=3))
ENGINES: dict[str, Engine] = {
    "jit": Engine(subjects.NetSubject, subjects.Jitted, _JITTED),
    "jit-function": Engine(subjects.NetSubject, subjects.JittedFunction, _JITTED),
    "jit-open": Engine(subjects.NetSubject, subjects.JittedOpen, _JITTED),
    "model": Engine(subjects.NetSubject, subjects.Exported, _EXPORTING, shown=_EXPORTED),
    "eager": Engine(subjects.Formulas, subjects.Eager, (*_CALLING, *actions.AT_ONCE), {"float64": 1e-5}),
    "plan": Engine(programs.ProgramSubject, programs.Planned, programs.RUNNING, shown=_RUNS),
}
_HALVES = 0.1  # where autocast was on
_PLAIN = ("CallNet", "Backward", "Fork", "Run")  # what happens in most lives


class Life:
    """A subject and its reference, to which the same happens.

    Args:
        engine: A key of ENGINES.
        parts: Kinds of the parts of the net or program.
        steps: What happens; `differences` does it.
        dtype: Of parameters and inputs.
    """

    def __init__(self, engine: str, parts: Sequence[str], steps: Sequence[Action] = (), dtype: str = "float64") -> None:
        self.engine, self.parts, self.steps, self.dtype = engine, list(parts), list(steps), dtype
        self.kind = ENGINES[engine]
        self.done: list[Action] = []
        self.over = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.reference, self.subject = (
                self.kind.reference(self.parts, dtype),
                self.kind.subject(self.parts, dtype),
            )

    @property
    def labels(self) -> set[str]:
        """Its actions and parts, by which a known difference is told; the plainest part says nothing."""
        found = {label for action in self.done for label in action.labels}
        return (found | set(self.parts)) - set(part_kinds()[:1])

    def differences(self) -> list[Difference]:
        """Do all steps; returns the first difference, if there is one."""
        for action in self.steps:
            if (found := self.do(action)) is not None:
                return [found]
        return []

    def do(self, action: Action) -> Difference | None:
        """One step of both; what can't be done now is passed over, and after a difference nothing is done any more."""
        if self.over or not (action.applies(self.reference) and action.applies(self.subject)):
            return None
        self.done.append(action)
        self.subject.remember()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want, got = (attempt(partial(action.apply, s)) for s in (self.reference, self.subject))
            found = self._judged(want, got)
        self.over = self.over or found is not None
        return found

    def _judged(self, want: Outcome, got: Outcome) -> Difference | None:
        run = len(self.done) - 1
        if self.subject.excuses(want, got):
            self.over = True  # the two are no longer in the same state
            return None
        alike = not want.ok and (want.raised == got.raised or self.reference.is_formula)
        if not got.ok and alike:
            want, got = Outcome(), Outcome()
            if torn := self.subject.reconciled(self.reference):
                return Difference(self.engine, "torn", run, "", torn)
        elif not got.ok:
            expected = f"; the reference raises {want.raised or want.refused}: {want.text}" if not want.ok else ""
            kind = "refused" if got.refused else f"raised {got.raised}"
            text = f"{got.refused or got.raised}: {got.text}{expected}"
            return Difference(self.engine, kind, run, "", text)
        elif not want.ok:
            text = f"the reference raises {want.refused or want.raised}: {want.text}"
            return Difference(self.engine, "accepted", run, "", text)
        wanted, gotten = want.values | self.reference.state(), got.values | self.subject.state()
        for name in [*wanted, *(n for n in gotten if n not in wanted)]:
            found = _differs(wanted.get(name), gotten.get(name), self._rtol(name in got.values))
            if found:
                return Difference(self.engine, found[0], run, name, found[1])
        return None

    def _rtol(self, is_new: bool) -> float:
        """Of what was compared last; is_new: the last action made it.

        What was computed in autocast is rounded, and so is all that may come of it, but not a call that follows.
        """
        halves = [getattr(a, "autocast", False) for a in self.done]
        if True in halves:
            after = self.done[halves.index(True) :]
            plain = all(isinstance(a, actions.CallNet) for a in after) and not self.reference.has("writes")
            if halves[-1] or not (is_new and plain):
                return _HALVES
        return self.kind.rtol[self.dtype]

    def script(self, difference: Difference | None = None) -> str:
        """Source that lives it again and prints the difference."""
        names = sorted({type(a).__name__ for a in self.done})
        lines = [f"from {ENGINES[self.engine].doing[0].__module__} import "]
        lines[0] += ", ".join(names)
        lines += ["from oprack.testing.fuzz import Life", "", f"# {difference or 'it ended the process'}"]
        lines += ["steps = [", *(f"    {a!r}," for a in self.done), "]"]
        dtype = "" if self.dtype == "float64" else f", dtype={self.dtype!r}"
        lines.append(f"life = Life({self.engine!r}, {self.parts!r}, steps{dtype})")
        lines.append("print(*life.differences(), sep='\\n')")
        return "\n".join(lines) + "\n"


def _differs(want: Any, got: Any, rtol: float) -> tuple[str, str] | None:
    """(kind, text) of how two arrays differ, of which None stands for none."""
    if want is None or got is None:
        same = want is None and got is None
        return None if same else ("missing", "is None" if got is None else "is there, expected None")
    if want.dtype != got.dtype:
        return "dtype", f"has dtype {got.dtype}, expected {want.dtype}"
    if want.shape != got.shape:
        return "shape", f"has shape {list(got.shape)}, expected {list(want.shape)}"
    if want.dtype.kind in "fV" or want.dtype.name == "bfloat16":
        a, b = want.astype("f8"), got.astype("f8")
        finite = a[np.isfinite(a)]
        equal = np.isclose(b, a, rtol=0.0, atol=rtol * max(1.0, np.abs(finite).max(initial=0.0)), equal_nan=True)
    else:
        equal = np.asarray(want == got)
    if equal.all():
        return None
    at = tuple(np.argwhere(~equal)[0].tolist())
    return "value", f"at {list(at)} {got[at]!s}, expected {want[at]!s} ({int((~equal).sum())} of {want.size} differ)"


def part_kinds() -> list[str]:
    """Kinds of parts, the plainest first."""
    return default_manager().layer_names(subjects.FUZZ_LIVES)


@dataclass
class FoundLife:
    """A life that differs, as small as it was made. after, seconds: lives and time until it was found."""

    difference: Difference
    life: Life
    seed: int
    after: int
    seconds: float

    @property
    def known(self) -> Known:
        """What lives with the same difference have in common."""
        return Known(self.difference.path, self.difference.kind, frozenset(self.life.labels))


def search_lives(
    engines: Sequence[str] = (),
    *,
    seed: int,
    examples: int = 100,
    seconds: float = 60.0,
    shrink_seconds: float = 20.0,
    known: Sequence[Known] = (),
    watch: Callable[[Life], None] | None = None,
) -> FoundLife | None:
    """The first life that differs in a way that is not known, made as small as the time lets; None without one.

    Args:
        engines: Keys of ENGINES; default: all.
        seed: Of what is drawn.
        examples: Lives after which the search ends.
        seconds: Time after which it ends.
        shrink_seconds: Time for making a life small.
        known: What is known: actions that would complete such a life are not done.
        watch: Gets each life before each of its actions.
    """
    rng, start = random.Random(seed), time.monotonic()
    for count in range(examples):
        if time.monotonic() > start + seconds:
            break
        life = _drawn(rng, list(engines) or list(ENGINES), known)
        difference = _lived(life, _actions(rng, life), known, watch)
        if difference is not None:
            found = FoundLife(difference, life, seed, count + 1, time.monotonic() - start)
            _reduce(found, time.monotonic() + shrink_seconds)
            return found
    return None


def _is_known(known: Sequence[Known], engine: str, labels: Collection[str]) -> bool:
    """Whether lives with these labels differ in a known way."""
    return any(k.covers(Difference(engine, k.kind, 0), frozenset(), list(labels)) for k in known)


def _drawn(rng: random.Random, engines: Sequence[str], known: Sequence[Known]) -> Life:
    """A new life, without parts that fail in each."""
    engine, kinds, dtype = rng.choice(engines), part_kinds(), rng.choice(["float64", "float32"])
    parts, takes = [rng.choice(kinds) for _ in range(rng.randint(1, 3))], ENGINES[engine].subject.takes
    usable = [p for p in parts if takes(p) and not _is_known(known, engine, {p, *_PLAIN})] or kinds[:1]
    return Life(engine, usable, dtype=dtype if dtype in ENGINES[engine].rtol else "float64")


def _actions(rng: random.Random, life: Life) -> Iterator[Action]:
    """What happens in a life: a few kinds of actions, so that these meet often, and between them what shows effects."""
    shown, doing = life.kind.shown, list(life.kind.doing)
    doing = [*doing[:1] * doing[0].often, *rng.sample(doing, rng.randint(1, min(6, len(doing))))]
    yield from shown[: rng.randint(0, 2)]
    for _ in range(_STEPS):
        of = rng.choice(doing)
        choices = {f.name: f.metadata["choices"] or part_kinds() for f in fields(of)}
        odd = [f.name for f in fields(of) if not f.metadata["size"]]
        chosen = {name: rng.choice(among) for name, among in choices.items()}
        # the plain form of an action as often as all others
        action = of(**chosen | {name: getattr(of(), name) for name in odd if rng.random() < 0.5})
        yield action
        if odd and rng.random() < 0.5:
            # the same again with one choice changed: what differs in nothing else is what a cache takes for the same
            name = rng.choice(odd)
            yield replace(action, **{name: rng.choice(choices[name])})
        yield from shown[: rng.randint(0, 3)]


def _lived(
    life: Life, steps: Iterator[Action], known: Sequence[Known], watch: Callable[[Life], None] | None
) -> Difference | None:
    """The first difference when these actions are done, but for those that complete what is known."""
    for action in steps:
        if life.over:
            break
        if _is_known(known, life.engine, life.labels | action.labels):
            continue
        if watch is not None:
            watch(life)
        difference = life.do(action)
        if difference is not None:
            return difference
    return None


def _reduce(found: FoundLife, until: float) -> None:
    """Take away what is not needed; two trials each, since a life with threads does not differ each time."""

    def differs(parts: list[str], steps: list[Action]) -> bool:
        for _ in range(2):
            life = Life(found.life.engine, parts, steps, found.life.dtype)
            for difference in life.differences():
                if difference.kind == found.difference.kind:
                    found.life, found.difference = life, difference
                    return True
        return False

    while time.monotonic() < until and any(
        differs(*one) for one in _smaller(found.life) if one[1] and time.monotonic() < until
    ):
        pass


def _smaller(life: Life) -> Iterator[tuple[list[str], list[Action]]]:
    """Parts and steps of lives with less in them: fewer steps or parts, plainer ones, choices that are the default."""
    steps, parts, plainest = life.done, life.parts, part_kinds()[0]
    for length in (8, 4, 2, 1):
        for i in range(0, len(steps) - length + 1, length):
            yield parts, steps[:i] + steps[i + length :]
    for i, action in enumerate(steps):
        if isinstance(action, actions.AddPart):  # it was there from the beginning
            yield [*parts, action.kind], steps[:i] + steps[i + 1 :]
    for i, part in enumerate(parts):
        if len(parts) > 1:
            yield parts[:i] + parts[i + 1 :], steps
        if part != plainest:
            yield [*parts[:i], plainest, *parts[i + 1 :]], steps
    odd = [(a, f.name) for a in steps for f in fields(a) if repr(_plainer(a, f.name)) != repr(a)]
    for one, name in odd:
        yield parts, [_plainer(a, name) if a is one else a for a in steps]
    for name in sorted({name for _, name in odd}):  # in all actions at once
        yield parts, [_plainer(a, name) for a in steps]


def _plainer(action: Action, name: str) -> Action:
    """The action with the default of a field, if it has the field."""
    of = next((f for f in fields(action) if f.name == name), None)
    if of is None:
        return action
    return replace(action, **{name: of.default if of.metadata["choices"] else part_kinds()[0]})
