"""paddle.static: programs, executors, scopes, places."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import oprack
from oprack import functional as F
from oprack import layers

from oprack_paddle.functions._tools import dtype_name

_seeds = WeakKeyDictionary[oprack.Program, int]()


def _random_seed(program: oprack.Program) -> int:
    """The seed that a program was given; 0 for none."""
    return _seeds.get(program, 0)


def _set_random_seed(program: oprack.Program, seed: int) -> None:
    """Start the random numbers of ops anew, from a seed."""
    _seeds[program] = int(seed)
    oprack.seed(int(seed))


oprack.Program.random_seed = property(_random_seed, _set_random_seed)  # type: ignore[attr-defined]

_scopes: list[oprack.Scope] = [oprack.Scope()]


def global_scope() -> Any:
    """The scope in which programs keep their variables."""
    return _scopes[-1]


@contextmanager
def scope_guard(scope: Any) -> Iterator[None]:
    """Another scope inside a with block."""
    _scopes.append(scope)
    try:
        yield
    finally:
        _scopes.pop()


class Executor(oprack.Executor):
    """Runs programs; without a program the current one, in the global scope."""

    def __init__(self, place: Any = None) -> None:
        super().__init__(place if place is not None else oprack.CPUPlace())

    def run(
        self, program: Any = None, feed: Any = None, feed_var_name: str = "feed", fetch_list: Any = None,
        fetch_var_name: str = "fetch",
        scope: Any = None, return_numpy: bool = True, use_program_cache: bool = False, return_merged: bool = True,
        use_prune: bool = False,
    ) -> Any:  # fmt: skip
        """Run a program once and give what was asked for."""
        program = oprack.default_main_program() if program is None else program
        program = getattr(program, "_program", program)
        if hasattr(program, "run_model"):
            return program.run_model(self, feed, fetch_list, return_numpy)
        feed = feed[0] if isinstance(feed, list | tuple) and feed else feed
        scope = global_scope() if scope is None else scope
        fetched = [f for f in fetch_list or () if f is not None]
        return super().run(program, feed=dict(feed or {}), fetch_list=fetched, scope=scope, return_numpy=return_numpy)


def data(name: str, shape: Any, dtype: Any = None, lod_level: int = 0) -> Any:
    """A variable that is fed."""
    from oprack_paddle.state import get_default_dtype

    return oprack.data(name, list(shape), dtype_name(dtype) or get_default_dtype(), lod_level)


def create_parameter(
    shape: Any, dtype: Any, name: Any = None, attr: Any = None, is_bias: bool = False, default_initializer: Any = None
) -> Any:
    """A parameter of the current program."""
    return layers.create_parameter(list(shape), dtype_name(dtype), name, attr, is_bias, default_initializer)


def create_global_var(
    shape: Any, value: float, dtype: Any, persistable: bool = False, force_cpu: bool = False, name: Any = None
) -> Any:
    """A variable with a value from the start."""
    return layers.create_global_var(list(shape), value, dtype_name(dtype), persistable, name)


def cpu_places(device_count: Any = None) -> list[Any]:
    """The places of so many CPUs."""
    import os

    return [oprack.CPUPlace()] * int(device_count or os.environ.get("CPU_NUM", 1))


def cuda_places(device_ids: Any = None) -> list[Any]:
    """The places of GPUs."""
    ids = [0] if device_ids is None else [device_ids] if isinstance(device_ids, int) else device_ids
    return [oprack.CUDAPlace(i) for i in ids]


class BuildStrategy:
    """Settings of a compiled program; any may be set, and none changes what a program computes here."""


class ExecutionStrategy:
    """Settings of a run; any may be set, and none changes what a program computes here."""


class CompiledProgram:
    """A program, whose runs are compiled here in any case."""

    def __init__(self, program_or_graph: Any, build_strategy: Any = None) -> None:
        self._program, self._build_strategy = program_or_graph, build_strategy


@contextmanager
def device_guard(device: Any = None) -> Iterator[None]:
    """Ops inside are meant for a device; an executor has one place for all of them."""
    yield


class WeightNormParamAttr(oprack.ParamAttr):
    """A parameter as direction and length; the length is of the initial value."""

    def __init__(
        self, dim: Any = None, name: Any = None, initializer: Any = None, learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True, do_model_average: bool = False, need_clip: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            name=name, initializer=initializer, learning_rate=learning_rate, regularizer=regularizer,
            trainable=trainable,
            need_clip=need_clip,
        )  # fmt: skip
        self.dim = dim


class ExponentialMovingAverage:
    """Averages of parameters that forget the past; update() after each step, and apply() to use them."""

    def __init__(self, decay: float = 0.999, thres_steps: Any = None, name: Any = None) -> None:
        self._decay, self._thres_steps, self._steps = decay, thres_steps, 0
        self._program, self._averages = oprack.default_main_program(), dict[str, Any]()

    def _parameters(self) -> Iterator[tuple[str, Any]]:
        for p in self._program.all_parameters():
            found = global_scope().find_var(p.name)
            if found is not None:
                yield p.name, found

    def update(self) -> None:
        """Take the parameters as they are now into the averages."""
        self._steps += 1
        for name, held in self._parameters():
            before = self._averages.get(name, 0.0)
            self._averages[name] = self._decay * before + (1 - self._decay) * np.asarray(held.get().array)

    @contextmanager
    def apply(self, executor: Any, need_restore: bool = True) -> Iterator[None]:
        """The averages in place of the parameters, inside a with block."""
        kept = {n: np.array(v.get().array) for n, v in self._parameters()}
        for name, held in self._parameters():
            average = self._averages[name] / (1 - self._decay**self._steps)
            held.get().set(average.astype(kept[name].dtype))
        self._kept = kept
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Any) -> None:
        """The parameters themselves again."""
        for name, held in self._parameters():
            held.get().set(self._kept[name])


def accuracy(input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None) -> Any:
    """The share of examples whose label is among the k likeliest classes."""
    return layers.accuracy(input, label, k, correct, total)


def Print(
    input: Any, first_n: int = -1, message: Any = None, summarize: int = 20, print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True, print_tensor_layout: bool = True, print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Any:  # fmt: skip
    """Print a variable whenever it is computed."""
    return layers.Print(input, first_n, message, summarize, print_phase)


_FAR = 2**31 - 1


def setitem(x: Any, item: Any, value: Any) -> Any:
    """A variable with other values at some places, which numbers and slices name.

    Args:
        x: The variable, which is not changed.
        item: What stands in brackets: numbers, slices, None and `...`.
        value: A number, an array or a variable that broadcasts to the places.

    Returns:
        The new variable.

    Raises:
        TypeError: Something else stands in brackets.
    """
    places = list(item) if isinstance(item, tuple) else [item]
    if Ellipsis in places:
        at = places.index(Ellipsis)
        missing = len(x.shape) - sum(p is not None and p is not Ellipsis for p in places)
        places[at : at + 1] = [slice(None)] * missing
    attrs: dict[str, list[int]] = {n: [] for n in ("axes", "starts", "ends", "steps", "decrease_axes", "none_axes")}
    axis = 0
    for place in places:
        if place is None:
            attrs["none_axes"].append(axis + len(attrs["none_axes"]))
            continue
        first, last, step, is_one = _ends(place)
        for name, number in (("axes", axis), ("starts", first), ("ends", last), ("steps", step)):
            attrs[name].append(number)
        attrs["decrease_axes"] += [axis] * is_one
        axis += 1
    if not isinstance(value, layers.Variable):
        value = layers.assign(np.asarray(value, x.dtype))
    value = value if value.dtype == x.dtype else value.astype(x.dtype)
    return F.set_value(x, value_tensor=value, **attrs)


def _ends(place: Any) -> tuple[int, int, int, bool]:
    """Start, end and step of what stands in brackets for a dim, and whether it is one number."""
    if isinstance(place, slice):
        step = 1 if place.step is None else int(place.step)
        first = (0 if step > 0 else _FAR) if place.start is None else int(place.start)
        last = (_FAR if step > 0 else -_FAR) if place.stop is None else int(place.stop)
        return first, last, step, False
    if isinstance(place, bool) or not isinstance(place, int | np.integer):
        raise TypeError(f"setitem: {place!r} stands in brackets; expected a number, a slice, None or `...`")
    return int(place), int(place) + 1 if place != -1 else _FAR, 1, True
