"""Nets that live: the same net called by one engine or another, and by NumPy formulas.

Parts of nets come from packs (namespace FUZZ_LIVES of the hook oprack_layers): Modules from rows of WIDTH numbers to as
many, with `formula(x)`, the same in NumPy; op_packages/nn has those of this repository, and says what they declare.
"""

from __future__ import annotations

import contextlib
import copy
import io
import math
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import oprack
from oprack.errors import PreconditionNotMetError
from oprack.nn.module import Module
from oprack.packs.manager import default_manager
from oprack.testing.fuzz.runs.outcome import Outcome

FUZZ_LIVES = "fuzz_lives"
WIDTH = 3
_HELD = 4  # calls whose tensors are looked at after every action
_STEP = 1e-5  # of central differences, in float64
_LARGE = 1e4  # a gradient of which central differences no longer have the digits that are compared


def fresh(shape: Sequence[int], number: int, dtype: str = "float64") -> np.ndarray:
    """The same array for the same number."""
    return np.random.default_rng(number).uniform(-1.0, 1.0, tuple(shape)).astype(dtype)


def scaled(x: Any, setting: Any) -> Any:
    """x times a number of Python, alone or the last of a list or dict; x itself for 1.0.

    Numbers that are equal to Python but differ can be told apart, and None fails.

    Raises:
        ValueError: setting is None.
    """
    while isinstance(setting, list | tuple | dict):
        setting = [*(setting.values() if isinstance(setting, dict) else setting)][-1]
    if setting is None:
        raise ValueError("expected a number, got None")
    if setting is True:
        return x - 1.0
    if setting == 1.0 and isinstance(setting, float):
        return x  # what parts give may lie in the memory of what they got, and stays there
    return -x if math.copysign(1.0, setting) < 0 else x * float(setting)


def new_part(kind: str, dtype: str, number: int) -> Module:
    """A part of a kind that a pack brings, with parameters that follow from the number."""
    part: Module = default_manager().layer(FUZZ_LIVES, kind)().to(dtype=dtype)
    for i, p in enumerate(part.parameters()):
        p.set_value(fresh(p.shape, number + i, dtype))
    return part


class Net(Module):
    """Parts one after the other, and `scaled` by an argument that is no tensor."""

    def __init__(self, kinds: Sequence[str], dtype: str) -> None:
        super().__init__()
        self.parts = oprack.nn.Sequential(*(new_part(k, dtype, 1000 * i) for i, k in enumerate(kinds)))

    def forward(self, x: Any, *, s: Any = 1.0) -> Any:
        """scaled(parts(x), s)."""
        return scaled(self.parts(x), s)

    def formula(self, x: np.ndarray, s: Any) -> np.ndarray:
        """The same in NumPy."""
        for part in self.parts:
            x = part.formula(x)
        return np.asarray(scaled(x, s))


@dataclass
class Call:
    """A call that was made: its input, its result, and what its gradients need, for subjects that keep something."""

    x: Any
    y: Any
    kept: Any = None
    changed: bool = False


class NetSubject:
    """A net, called as it is: the reference of the other engines.

    Attributes:
        calls: Those that were made, with their tensors.
        pending: Those whose gradients were not asked for yet.
        count: Number of the next array that is drawn; subjects that do the same draw the same.
    """

    open_dims = False
    is_formula = False

    def __init__(self, kinds: Sequence[str], dtype: str) -> None:
        self.dtype, self.count = dtype, 0
        with oprack.unique_name.guard():
            self.net = Net(kinds, dtype)
        self.function = self.made()
        self.optimizer: Any = None
        if list(self.net.parameters()):
            self.optimize("SGD", (0.1,))
        self.calls: list[Call] = []
        self.pending: list[Call] = []
        self.asked: Call | None = None
        self.saved: tuple[Any, Any] | None = None
        self.model: Callable[[np.ndarray], np.ndarray] | None = None
        self.model_rows: int | None = None
        self.hooks: dict[Any, Callable[[], None]] = {}

    # What engines do in their own way ---------------------------------------------------------------------------------
    def made(self) -> Callable[..., Any]:
        """The function that is called."""
        return self.net

    def called(self, x: Any, s: Any) -> Call:
        """Call the net; 1.0 is the default of s and left out."""
        return Call(x, self.function(x) if s == 1.0 and isinstance(s, float) else self.function(x, s=s))

    def backward(self, call: Call) -> None:
        """Add the gradients of a loss of the call to those of parameters and input."""
        _loss(call.y).backward()

    def value_and_gradient(self, x: np.ndarray) -> list[np.ndarray]:
        """[result, gradient of the loss by x]; nothing is kept."""
        tensor = self.tensor(x, True)
        y = self.called(tensor, 1.0).y
        (gradient,) = oprack.grad([_loss(y)], [tensor])
        return [y.numpy(), _array(gradient)]

    def at_once(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        """The results of jobs; engines other than the reference do them in threads that take turns very often."""
        return [job() for job in jobs]

    def export(self, open_dims: bool) -> None:
        """Keep the net as it is now as `model`."""
        snapshot = copy.deepcopy(self.net)

        def infer(x: np.ndarray) -> np.ndarray:
            with oprack.no_grad():
                result: np.ndarray = snapshot(oprack.to_tensor(x)).numpy()
            return result

        infer(fresh([2, WIDTH], 0, self.dtype))  # a model is not made of what fails
        self.model = infer

    # What actions need ------------------------------------------------------------------------------------------------
    def number(self) -> int:
        """Of the next array."""
        self.count += 1
        return self.count

    def tensor(self, x: np.ndarray, requires_grad: bool) -> Any:
        """A copy of an array as a tensor."""
        tensor = oprack.to_tensor(x.copy())
        tensor.requires_grad = requires_grad
        return tensor

    def keep(self, call: Call) -> None:
        """Look at the call's tensors after each action from now on."""
        self.calls = [*self.calls, call][-_HELD:]
        self.pending = [*self.pending, call][-_HELD:]

    def optimize(self, name: str, arguments: Sequence[Any]) -> None:
        """A new optimizer for the parameters there are now."""
        make = getattr(oprack.optimizer, name)
        self.optimizer = make(*arguments, parameters=list(self.net.named_parameters()))

    def owner(self, index: int) -> tuple[Module, str]:
        """(module, attribute) of a parameter by its number."""
        paths = [n for n, _ in self.net.named_parameters()]
        path, _, name = paths[index % len(paths)].rpartition(".")
        module = self.net
        for step in path.split("."):
            module = getattr(module, step)
        return module, name

    def state(self) -> dict[str, Any]:
        """Arrays by name: parameters, buffers, gradients, the optimizer's state, and tensors of earlier calls."""
        found: dict[str, Any] = {}
        for n, p in self.net.named_parameters():
            found[n], found[f"gradient of {n}"] = p.numpy(), _numpy(p.grad)
        found |= {n: b.numpy() for n, b in self.net.named_buffers()}
        if self.optimizer is not None:
            found |= {f"optimizer's {n}": _array(v) for n, v in self.optimizer.state_dict().items()}
        for i, call in enumerate(self.calls):
            found[f"gradient of x of held call {i}"] = _numpy(call.x.grad)
            if not self.copies:
                found[f"x of held call {i}"], found[f"y of held call {i}"] = call.x.numpy(), call.y.numpy()
        return found

    def excuses(self, want: Outcome, got: Outcome) -> bool:
        """Whether this engine may refuse what the reference does, or has not got as far as the reference before both
        failed."""
        if self.open_dims and got.refused and self.has("counts_rows"):
            return True  # also before the reference meets another mistake of the call, further on
        if not want.ok and not got.ok:
            # eager gradients go as far as the op that refuses
            return self.has("writes") or (self.asked is not None and self.asked.changed)
        return False

    def remember(self) -> None:
        """Called before each action, for what `reconciled` needs."""

    def reconciled(self, reference: NetSubject) -> str:
        """What a call that failed left half done; "" where the state should be the reference's."""
        return ""

    def refuses_changed(self, want: Outcome, got: Outcome) -> bool:
        """Whether it refuses a gradient that may need what was changed since."""
        changed = self.asked is not None and self.asked.changed
        return changed and want.ok and got.refused == "PreconditionNotMetError"

    copies = False
    """Whether results never lie in the memory of arguments, so that what is held is not compared."""

    @classmethod
    def takes(cls, kind: str) -> bool:
        """Whether this engine runs parts of a kind."""
        return cls.copies or not getattr(default_manager().layer(FUZZ_LIVES, kind), "eager_only", False)

    def has(self, attribute: str) -> bool:
        """Whether a part declares something."""
        return any(getattr(part, attribute, False) for part in self.net.parts)


class Eager(NetSubject):
    """Eager calls, compared with formulas."""

    copies = True

    def at_once(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        return in_threads(jobs)

    def excuses(self, want: Outcome, got: Outcome) -> bool:
        """Formulas keep what a gradient needs, and eager calls refuse it once it was changed.

        Training may diverge, and the rounding of its loss is what central differences would show.
        """
        grads = [p.grad for p in self.net.parameters() if p.grad is not None]
        if any(np.abs(grad.numpy()).max(initial=0.0) >= _LARGE for grad in grads):
            return True
        return super().excuses(want, got) or self.refuses_changed(want, got)


class Formulas(NetSubject):
    """The same net by NumPy formulas, with gradients by central differences; errors are NumPy's."""

    is_formula = True
    copies = True

    def called(self, x: Any, s: Any) -> Call:
        snapshot, array = copy.deepcopy(self.net), x.numpy().copy()
        wanted: list[tuple[Any, Any]] = [
            (p, q) for p, q in zip(self.net.parameters(), snapshot.parameters(), strict=True) if p.requires_grad
        ]
        own: list[tuple[Any, Any]] = [(x, None)] * x.requires_grad
        result = self.net.formula(array, s)
        if result is array and not oprack.is_grad_enabled():  # the argument itself goes on requiring what it did
            return Call(x, x, (snapshot, array, s, own))
        kept = (snapshot, array, s, wanted + own if oprack.is_grad_enabled() else [])
        return Call(x, oprack.to_tensor(result), kept)

    def backward(self, call: Call) -> None:
        snapshot, array, s, wanted = call.kept
        if not wanted:
            raise PreconditionNotMetError("nothing requires a gradient")
        buffers = [(b, b.numpy().copy()) for _, b in snapshot.named_buffers()]

        def result() -> np.ndarray:
            for b, value in buffers:
                b.set_value(value)
            return np.asarray(snapshot.formula(array, s))

        # A result that was written to since has its new value in the loss, and the gradient of what it was.
        written = call.y.numpy() - result() if call.changed else 0.0

        def loss() -> float:
            y = result() + written
            return float((y * y * fresh(y.shape, 7)).sum())

        for tensor, copied in wanted:
            slope = _slope(loss, array) if copied is None else _slope(loss, copied.numpy().copy(), copied.set_value)
            tensor.grad = oprack.to_tensor(slope if tensor.grad is None else slope + tensor.grad.numpy())

    def value_and_gradient(self, x: np.ndarray) -> list[np.ndarray]:
        tensor = self.tensor(x, True)
        call = self.called(tensor, 1.0)
        call.kept = (*call.kept[:3], [(tensor, None)])
        Formulas.backward(self, call)
        return [call.y.numpy(), tensor.grad.numpy()]


class Jitted(NetSubject):
    """jit of the Module."""

    def made(self) -> Callable[..., Any]:
        jitted: Callable[..., Any] = oprack.jit(self.net)
        return jitted

    def at_once(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        return in_threads(jobs)

    def excuses(self, want: Outcome, got: Outcome) -> bool:
        """One op for a whole function may need what no op of it does."""
        return super().excuses(want, got) or self.refuses_changed(want, got)


class JittedFunction(Jitted):
    """jit of a function that uses the Module."""

    def made(self) -> Callable[..., Any]:
        net = self.net
        jitted: Callable[..., Any] = oprack.jit(lambda x, *, s=1.0: net(x, s=s))
        return jitted


class JittedOpen(Jitted):
    """jit with an open number of rows."""

    open_dims = True

    def made(self) -> Callable[..., Any]:
        jitted: Callable[..., Any] = oprack.jit(self.net, specs=[oprack.InputSpec([None, WIDTH], self.dtype)])
        return jitted


class Exported(NetSubject):
    """to_program and a predictor of the saved model; all else is eager."""

    open_dims = True

    def export(self, open_dims: bool) -> None:
        """Save the net, for any number of rows or for two."""
        spec = oprack.InputSpec([None if open_dims else 2, WIDTH], self.dtype, "x")
        traced = oprack.to_program(self.net, [spec])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            arguments = (traced.program, traced.feed_names, traced.fetch_names, traced.scope)
            oprack.io.save_inference_model(path, *arguments)
            inference = oprack.inference
            predictor = inference.create_predictor(inference.Config(f"{path}.pdmodel", f"{path}.pdiparams"))
        self.model = lambda x: np.asarray((predictor.run([x]) or [])[0])


def in_threads(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """The results of jobs that run at once, with switches so often that races show; raises the first one's error."""
    results: list[Any] = [None] * len(jobs)
    errors: list[Exception] = []
    start = threading.Barrier(len(jobs))

    def work(i: int) -> None:
        start.wait()
        try:
            results[i] = jobs[i]()
        except Exception as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(jobs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]
    return results


def in_fork(job: Callable[[], np.ndarray]) -> np.ndarray:
    """What a job gives in a forked process.

    Raises:
        PreconditionNotMetError: The process failed.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(Exception), os.fdopen(writer, "wb") as pipe:
            np.save(pipe, job(), allow_pickle=False)
            code = 0
        os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    if status:
        raise PreconditionNotMetError(f"the forked process ended with status {status}")
    array: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
    return array


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A temporary directory."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def _loss(y: Any) -> Any:
    """A sum of squares with weights, so that no gradient is 0 by symmetry."""
    return (y * y * oprack.to_tensor(fresh(y.shape, 7, y.dtype))).sum()


def _slope(loss: Callable[[], float], array: np.ndarray, put: Callable[[np.ndarray], None] | None = None) -> np.ndarray:
    """Central differences by the elements of an array, which is put back in place by `put`, or is read as it is.

    Those of two steps, of which Richardson's extrapolation takes the error of the second order away: batch norms of
    rows that hardly differ have large third derivatives.
    """
    slope = np.zeros_like(array)
    for i in np.ndindex(array.shape):
        value, ends = array[i], []
        for steps in (-2, -1, 1, 2):
            array[i] = value + steps * _STEP
            if put is not None:
                put(array)
            ends.append(loss())
        array[i] = value
        slope[i] = (8 * (ends[2] - ends[1]) - (ends[3] - ends[0])) / (12 * _STEP)
    if put is not None:
        put(array)
    return slope


def _numpy(tensor: Any) -> np.ndarray | None:
    return None if tensor is None else tensor.numpy()


def _array(value: Any) -> np.ndarray:
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)
