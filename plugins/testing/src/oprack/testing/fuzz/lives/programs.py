"""Static programs that live: training, fetch lists, failures and what is done to a scope, by plan and op by op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import oprack
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Scope
from oprack.testing.fuzz.lives.actions import LINEAR, OPTIMIZERS, Action, among
from oprack.testing.fuzz.lives.subjects import FUZZ_LIVES, WIDTH, folder, fresh
from oprack.testing.fuzz.runs.outcome import Outcome

_HELD = 4
_ABSENT = 99  # a row that there never is


class ProgramSubject:
    """A program that trains, and one that infers, run op by op: the reference of the plan.

    Behind the update stands an op that can fail, as parts can that declare `fails`.

    Attributes:
        optimizer: The first action may choose another one before anything runs.
        held: Arrays that runs were given or gave, which nothing may change.
    """

    prepared = is_formula = False

    def __init__(self, kinds: Sequence[str], dtype: str) -> None:
        self.kinds = list(kinds)
        self.dtype, self.count = dtype, 0
        self.scope, self.held = Scope(), list[Any]()
        self.saved: dict[str, Any] = {}
        self.before: dict[str, Any] = {}
        self.executor = Executor(seed=1, prepared=self.prepared)
        self.tampered = False
        self.build("Adam")

    def build(self, optimizer: str) -> None:
        """Write the programs anew, with an optimizer by name, and draw parameters."""
        if self.dtype != "float64" and any(getattr(self._part(k), "writes", False) for k in self.kinds):
            optimizer = LINEAR[0]  # gradients in front of a normalisation are 0 but for rounding
        self.main, startup = oprack.Program(), oprack.Program()
        with oprack.unique_name.guard(), oprack.program_guard(self.main, startup):
            x = oprack.layers.data("x", [None, WIDTH], self.dtype)
            kinds = [*self.kinds, _kind_that("fails")]
            self.rows = [oprack.layers.data(f"rows{i}", [None], "int64") for i in range(len(kinds))]
            y = x
            for kind, rows in zip(self.kinds, self.rows, strict=False):
                y = self._part(kind).program(y, rows)
            self.loss = oprack.layers.reduce_sum(y * y)
            self.test = self.main.clone(for_test=True)
            self.trains = bool(self.main.parameters)
            if self.trains:
                getattr(oprack.optimizer, optimizer)(*OPTIMIZERS[optimizer]).minimize(self.loss)
            self.checked = self._part(kinds[-1]).program(y, self.rows[-1])
        self.y = y
        self.executor.run(startup, scope=self.scope)
        block = self.main.global_block()
        self.variables = sorted(n for n, v in block.vars.items() if v.persistable and self.scope.find_var(n))
        for i, name in enumerate(self.main.parameters):
            array = self.scope.var(name).get().array
            self.scope.var(name).set(LoDTensor(fresh(array.shape, 500 + i, str(array.dtype))))

    @staticmethod
    def _part(kind: str) -> Any:
        return default_manager().layer(FUZZ_LIVES, kind)

    @classmethod
    def takes(cls, kind: str) -> bool:
        """Whether parts of a kind can be written as layers."""
        return hasattr(cls._part(kind), "program")

    def fetchable(self) -> list[Any]:
        """What fetch lists are made of."""
        gradients = [f"{n}@GRAD" for n in self.main.parameters]
        return [self.loss, self.y, self.checked, *self.main.parameters, *gradients]

    def state(self) -> dict[str, Any]:
        """Persistable variables and held arrays by name."""
        found: dict[str, Any] = {f"held array {i}": a for i, a in enumerate(self.held)}
        for name in self.variables:
            var = self.scope.find_var(name)
            value = None if var is None else var.value
            found[name] = None if value is None or value.array is None else np.asarray(value.array)
        return found

    def keep(self, *arrays: Any) -> None:
        """Look at arrays after each action from now on."""
        self.held = [*self.held, *arrays][-_HELD:]

    def number(self) -> int:
        """Of the next array."""
        self.count += 1
        return self.count

    def excuses(self, want: Outcome, got: Outcome) -> bool:
        """A plan may do nothing that the reference does not."""
        return False

    def remember(self) -> None:
        """Keep the state before an action, which `reconciled` compares with."""
        self.before = {n: None if a is None else a.copy() for n, a in self.state().items()}

    def reconciled(self, reference: ProgramSubject) -> str:
        """After an action that failed: what an op writes is all new or all old, or this says what is torn.

        Ops behind the one that failed may have run in a plan, or ops before it not; both go on from the reference.
        """
        new, old, own = reference.state(), self.before, self.state()
        for op in self.main.desc.blocks[0].ops:
            names = [n for n in op.output_arg_names() if n in self.variables]
            moved = {n for n in names if not _equal(own[n], old[n])}
            odd = [n for n in moved if not _equal(own[n], new[n]) and _equal(old[n], new[n]) is False]
            stayed = [n for n in names if n not in moved and not _equal(new[n], old[n])]
            if odd or (moved and stayed):
                return f"op {op.type}: new are {sorted(moved)}, old are {stayed}, neither are {odd}"
        for name in self.variables:
            if new[name] is not None:
                self.scope.var(name).set(LoDTensor(new[name].copy()))
        return ""


class Planned(ProgramSubject):
    """The same by plans."""

    prepared = True


def _kind_that(attribute: str) -> str:
    manager = default_manager()
    kinds = manager.layer_names(FUZZ_LIVES)
    return next(k for k in kinds if getattr(manager.layer(FUZZ_LIVES, k), attribute, False))


def _equal(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    return bool(a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True))


@dataclass(frozen=True, repr=False)
class Run(Action):
    """A run of the program that trains, or of the one that infers; an op of the part `fails` finds no row."""

    rows: int = among(2, 1, 3, 5, size=True)
    fetch: tuple[int, ...] = among((0,), (1, 0), (), (0, 3), (1, 1), (0, 5, 4), (2, 0), size=True)
    fails: int = among(-1, 0, 1, 2, 3)
    test: bool = among(False, True)
    wide: bool = among(False, True)

    def apply(self, subject: ProgramSubject) -> dict[str, Any]:
        feed = {"x": fresh([self.rows, WIDTH + self.wide], subject.number(), subject.dtype)}
        for i, var in enumerate(subject.rows):
            last = i == len(subject.rows) - 1
            fails = self.fails == i or (self.fails == 3 and last)
            feed[var.name] = np.array([_ABSENT]) if fails else np.arange(self.rows)
        known = subject.fetchable()
        # what infers has no gradients, nor what stands behind the update
        usable = known[:2] + [f for f in known[3:] if "@" not in str(f)] if self.test else known
        fetch = [usable[i % len(usable)] for i in self.fetch]
        program = subject.test if self.test else subject.main
        results = [np.asarray(r) for r in subject.executor.run(program, feed, fetch, subject.scope)]
        subject.keep(feed["x"], *results[:2])
        return {f"result {i}": r.copy() for i, r in enumerate(results)}


@dataclass(frozen=True, repr=False)
class Rewrite(Action):
    """The programs anew, in the same scope, with another optimizer."""

    name: str = among(*OPTIMIZERS, size=True)

    def apply(self, subject: ProgramSubject) -> dict[str, Any]:
        subject.build(self.name)
        return {}


@dataclass(frozen=True, repr=False)
class Tamper(Action):
    """Do something to a variable of the scope."""

    how: str = among("set", "write", "scale", "erase", "dtype", "shape")
    number: int = among(0, 1, 2, 5, size=True)

    def applies(self, subject: ProgramSubject) -> bool:
        return bool(subject.variables)

    def apply(self, subject: ProgramSubject) -> dict[str, Any]:
        name = subject.variables[self.number % len(subject.variables)]
        var = subject.scope.var(name)
        array = None if var.value is None else var.get().array
        if array is None:
            return {}
        if self.how == "write":
            array[...] = 0.25
        elif self.how == "erase":
            var.value = None
        else:
            new = {"set": array * 0 + 0.5, "scale": array * 2, "dtype": array.astype("float32"), "shape": array[None]}
            var.set(LoDTensor(new[self.how]))
            subject.tampered |= self.how in ("dtype", "shape")
        return {}


@dataclass(frozen=True, repr=False)
class WriteHeld(Action):
    """Write to the last array that a run gave or was given."""

    def applies(self, subject: ProgramSubject) -> bool:
        return bool(subject.held) and subject.held[-1].flags.writeable

    def apply(self, subject: ProgramSubject) -> dict[str, Any]:
        subject.held[-1][...] = 7.0
        return {}


@dataclass(frozen=True, repr=False)
class SaveVars(Action):
    """Save all variables and load them into a new scope, which is gone on with."""

    def apply(self, subject: ProgramSubject) -> dict[str, Any]:
        with folder() as at:
            oprack.io.save_vars(at, subject.main, subject.scope, filename="all")
            scope = Scope()
            oprack.io.load_vars(at, subject.main, scope, filename="all")
        subject.scope = scope
        return {}


@dataclass(frozen=True, repr=False)
class Append(Action):
    """Append a layer to the program that trains, or change a number in an op of it, and fetch it from now on."""

    def apply(self, subject: ProgramSubject) -> dict[str, Any]:
        with oprack.unique_name.guard(f"later{subject.number()}_"), oprack.program_guard(subject.main):
            subject.checked = subject.y * 3.0
        return {}


@dataclass(frozen=True, repr=False)
class Predict(Action):
    """Save the program that infers as a model, and run it twice."""

    rows: int = among(2, 1, 3, size=True)

    def applies(self, subject: ProgramSubject) -> bool:
        return not subject.tampered  # a model takes what its program says, and a run what is there

    def apply(self, subject: ProgramSubject) -> dict[str, Any]:
        feed = {"x": fresh([self.rows, WIDTH], subject.number(), subject.dtype)}
        for var in subject.rows[:-1]:
            feed[var.name] = np.arange(self.rows)
        if not subject.prepared:
            (y,) = subject.executor.run(subject.test, feed, [subject.y], subject.scope)
            return {"y": y, "y again": y}
        with folder() as at:
            oprack.io.save_inference_model(at / "model", subject.test, list(feed), [subject.y.name], subject.scope)
            inference = oprack.inference
            config = inference.Config(str(at / "model.pdmodel"), str(at / "model.pdiparams"))
            predictor = inference.create_predictor(config)
        names = predictor.get_input_names()
        first, again = (np.asarray((predictor.run([feed[n] for n in names]) or [])[0]) for _ in range(2))
        return {"y": first, "y again": again}


RUNNING = (Run, Rewrite, Tamper, WriteHeld, SaveVars, Append, Predict)
