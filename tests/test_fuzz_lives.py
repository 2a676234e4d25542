"""The fuzzer of lives finds what is planted in an engine; every engine lives as its reference does."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.testing.fuzz.lives import life as lives
from oprack.testing.fuzz.lives.actions import (
    AddPart,
    Backward,
    CallNet,
    Change,
    Freeze,
    Hook,
    Load,
    Optimize,
    Save,
    Set,
    Step,
    Threads,
    Tie,
    Train,
)
from oprack.testing.fuzz.lives.life import ENGINES, Engine, Life, search_lives
from oprack.testing.fuzz.lives.programs import Planned, Predict, ProgramSubject, Run, SaveVars, Tamper
from oprack.testing.fuzz.lives.subjects import Call, Eager, Formulas, NetSubject, in_threads
from oprack.testing.fuzz.searching import Known

# Lives of each engine: three seconds or so.
EXAMPLES = {"jit": 30, "jit-function": 15, "jit-open": 15, "model": 15, "eager": 20, "plan": 12}
SEED = 20260101


@pytest.mark.parametrize("engine", ENGINES)
def test_lives(engine: str) -> None:
    """Every engine lives as its reference does."""
    found = search_lives([engine], seed=SEED, examples=EXAMPLES[engine], seconds=120.0, shrink_seconds=20.0)
    assert found is None, found.life.script(found.difference)


LIVED: list[tuple[str, str, list[Any]]] = [
    # two mistakes: jit refuses what counts rows as soon as it is written down, eager calls meet None behind it
    ("jit-open", "Branched", [CallNet(s=None)]),
    # without gradients a net may give back its argument, which has one of its own
    *(("eager", part, [CallNet(x_grad=True, no_grad=True), Backward()]) for part in ("Scaled", "Picked", "Dropped")),
    # a result that was written to has its new value in the loss, in formulas as well
    ("eager", "Affine", [CallNet(), Change(what="result"), Backward()]),
    # actions other than a run that both refuse, with nothing run before
    ("plan", "Affine", [Tamper("erase"), Predict()]),
    ("plan", "Affine", [Tamper("erase"), SaveVars()]),
    ("plan", "Affine", [Run(), Tamper("shape"), SaveVars(), Run()]),
]


@pytest.mark.parametrize(("engine", "part", "steps"), LIVED)
def test_lives_that_were_judged_wrongly(engine: str, part: str, steps: list[Any]) -> None:
    """Both fail alike, or the engine may refuse: no difference, and no failure of the fuzzer."""
    assert Life(engine, [part], steps).differences() == []


class Forgetful(NetSubject):
    """Keeps a copy of the net as it was at the first call for each number of rows, as a cache whose key lacks a lot."""

    def made(self) -> Callable[..., Any]:
        copies: dict[Any, Any] = {}

        def call(x: Any, *, s: Any = 1.0) -> Any:
            key = (x.shape, str(s) if isinstance(s, dict) else tuple(np.ravel(s)))  # 1, 1.0 and True are one key
            if key not in copies:
                copies[key] = copy.deepcopy(self.net), s
            net, first = copies[key]
            for own, kept in zip(self.net.parameters(), net.parameters(), strict=False):
                kept.set_value(own)
            return net(x, s=first)

        return call


class Stepping(NetSubject):
    """Steps go a little too far."""

    def optimize(self, name: str, arguments: Sequence[Any]) -> None:
        super().optimize(name, arguments)
        step = self.optimizer.step

        def further() -> None:
            step()
            for p in self.net.parameters():
                p.set_value(p.numpy() * (1 + 1e-3))

        self.optimizer.step = further


class Sharing(NetSubject):
    """What it returns lies in the memory of what is changed later."""

    def called(self, x: Any, s: Any) -> Call:
        return Call(x, x.detach())


class Apart(Sharing):
    """The same without the sharing."""

    def called(self, x: Any, s: Any) -> Call:
        return Call(x, oprack.to_tensor(x.numpy().copy()))


class Racing(NetSubject):
    """Calls put their input where other threads' calls do."""

    def at_once(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        return in_threads(jobs)

    def value_and_gradient(self, x: np.ndarray) -> list[np.ndarray]:
        self.shared = x
        value = super().value_and_gradient(x)[1]
        return [*super().value_and_gradient(self.shared)[:1], value]


class Wrong(Eager):
    """The sign of a gradient is lost."""

    def backward(self, call: Call) -> None:
        super().backward(call)
        for p in self.net.parameters():
            if p.grad is not None:
                p.grad = p.grad.abs()


PLANTED: list[tuple[type[NetSubject], type[NetSubject], tuple[Any, ...], str]] = [
    (NetSubject, Forgetful, (CallNet, Train), "Train"),
    (NetSubject, Forgetful, (CallNet, Set), "Set"),
    (NetSubject, Forgetful, (CallNet, AddPart), "AddPart"),
    (NetSubject, Forgetful, (CallNet, Hook), "Hook"),
    (NetSubject, Forgetful, (CallNet, Freeze), "Freeze"),
    (NetSubject, Forgetful, (CallNet,), "CallNet s"),
    (NetSubject, Stepping, (CallNet, Backward, Optimize, Step, Tie, Save, Load), "Step"),
    (Apart, Sharing, (CallNet, Change), "Change"),
    (NetSubject, Racing, (Threads,), "Threads"),
    (Formulas, Wrong, (CallNet, Backward), "Backward"),
]


@pytest.mark.parametrize(("reference", "subject", "actions", "label"), PLANTED)
def test_planted(reference: Any, subject: Any, actions: Any, label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of an engine is found by the action that shows it, and by a life of a few steps."""
    shown = [a() for a in (CallNet, Backward, Step) if a in actions]
    monkeypatch.setitem(ENGINES, "planted", Engine(reference, subject, actions, {"float64": 1e-6}, shown))
    # Forgetful's copies have buffers of their own, and one program for 1 and True
    other = {"Normalised", "Counted", "CallNet s", "CallNet within"} - {label}
    known = [Known("*", "*", frozenset({name})) for name in other]
    found = search_lives(["planted"], seed=1, examples=300, seconds=60.0, shrink_seconds=4.0, known=known)
    assert found is not None
    assert label in found.life.labels
    assert len(found.life.done) <= 5, found.life.script(found.difference)


class Halved(Planned):
    """A run that fails leaves a moment behind that is half new."""

    def reconciled(self, reference: ProgramSubject) -> str:
        for name in self.variables:
            if "moment" in name:
                self.scope.get_var(name).get().array[...] *= 0.5
        return super().reconciled(reference)


def test_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    """State that a run left half done is told, with the op whose it is."""
    engine = Engine(ProgramSubject, Halved, (Run,), {"float64": 1e-7})
    monkeypatch.setitem(ENGINES, "planted", engine)
    (found,) = Life("planted", ["Affine"], [Run(), Run(fails=3)]).differences()
    assert (found.kind, found.run) == ("torn", 1)
    assert "adam" in found.text


@pytest.mark.parametrize("engine", ["jit", "plan"])
def test_same(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine beside itself differs in nothing, whatever happens."""
    same = ENGINES[engine]
    monkeypatch.setitem(ENGINES, "same", Engine(same.reference, same.reference, same.doing, shown=same.shown))
    assert search_lives(["same"], seed=2, examples=10, seconds=60.0) is None


def test_script(tmp_path: Path) -> None:
    """The script of a life is run by Python, and prints what differs: here nothing."""
    steps = [CallNet(rows=3, s=-0.0, x_grad=True), Backward(), Optimize(), Step(), CallNet()]
    life = Life("eager", ["Affine", "Squashed"], steps)
    assert life.differences() == []
    file = tmp_path / "life.py"
    file.write_text(life.script(), "utf-8")
    assert "CallNet(rows=3, s=-0.0, x_grad=True)," in file.read_text("utf-8")
    done = subprocess.run([sys.executable, "-W", "error", str(file)], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


def test_known_lives_are_not_lived_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known is left out, and the search goes on to the next defect."""
    engine = Engine(NetSubject, Forgetful, (CallNet, Hook, AddPart), {"float64": 1e-6}, [CallNet()])
    monkeypatch.setitem(ENGINES, "planted", engine)
    known = [Known("*", "*", frozenset({part})) for part in ("Normalised", "Counted", "CallNet s", "CallNet within")]
    seen = set()
    for _ in range(2):
        found = search_lives(["planted"], seed=3, examples=300, seconds=60.0, shrink_seconds=4.0, known=known)
        assert found is not None
        seen |= found.life.labels & {"Hook", "AddPart"}
        known.append(found.known)
    assert seen == {"Hook", "AddPart"}
    assert search_lives(["planted"], seed=4, examples=60, seconds=60.0, known=known) is None


def test_differences_of_arrays() -> None:
    """Relative to the largest magnitude, and to 1 at least; None is an absent value."""
    a = np.array([1.0, np.nan])
    assert lives._differs(a, a + 1e-9, 1e-7) is None
    assert lives._differs(np.array([1e-9]), np.array([2e-9]), 1e-7) is None
    for other, kind in ((None, "missing"), (a.astype("f4"), "dtype"), (a[:1], "shape"), (a + 1e-3, "value")):
        found = lives._differs(a, other, 1e-7)
        assert found is not None
        assert found[0] == kind
