"""Parameter: a tensor that optimizers update, and its creation by an initializer, at once or where it will lie."""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np
from oprack.eager_tensor.devices import RANDOM, context, executor, home
from oprack.eager_tensor.meta import CPU, tensor_meta
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.functional.tensor import Tensor, to_tensor
from oprack.layers import unique_name
from oprack.layers.variable import Initializer, ParamAttr, Variable
from oprack.layers.variable import default_initializer as chosen
from oprack.program import Program
from oprack.runtime import RandomState
from oprack.tensor import LoDTensor, Place, Scope, numpy_dtype
from oprack.tensor.place import ShapesPlace
from oprack.tensor.shape_only import shape_array
from oprack.types import dtype_name

_SHAPES = ShapesPlace()
_DEFERRED: ContextVar[bool] = ContextVar("oprack_deferred", default=False)
_CHUNK = 1 << 18
"""Elements that are drawn at a time for a part of a parameter."""
Region = Sequence[tuple[int, int]]
"""(start, stop) for each dim."""


class Parameter(Tensor):
    """A tensor that optimizers update: `net.scale = oprack.Parameter(array)`.

    Args:
        data: The initial values: anything that `oprack.to_tensor` accepts, of a floating dtype.
        name: The name in programs and states of optimizers; default: generated.
        trainable: Whether optimizers update it.

    Raises:
        InvalidArgumentError: The data is not floating, or not dense.
    """

    __slots__ = ()
    attr: ParamAttr = ParamAttr()

    def __init__(self, data: Any, name: str | None = None, trainable: bool = True) -> None:
        source = to_tensor(data)
        if source._meta.container is not LoDTensor or not source._meta.differentiable:
            raise InvalidArgumentError(
                f"Parameter: got {source.describe()}; expected a dense tensor of a floating dtype; cast it first: "
                "oprack.to_tensor(data, 'float32')"
            )
        self._value, self._meta, self._node = (
            source._value,
            tensor_meta(LoDTensor, source._value.dtype, source.place),
            None,
        )
        self.name = name or unique_name.generate("parameter.w")
        self.requires_grad = trainable

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copy = super().__deepcopy__(memo)
        copy.attr = self.attr  # type: ignore[attr-defined]
        return copy

    @property
    def trainable(self) -> bool:
        """Whether optimizers change it."""
        return self.requires_grad

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.requires_grad = value


class DeferredParameter(Parameter):
    """A parameter that was made inside `deferred()`: it has a shape and a dtype, and no elements yet.

    It becomes a Parameter by `make`, which `net.to(place)` and `parallel.to_global(net, ...)` call, or by `set_value`.

    Attributes:
        draw: How its elements are drawn.
    """

    __slots__ = ()
    draw: Draw

    def make(self, array: Any = None, place: Place | None = None) -> None:
        """Let it have elements and be a Parameter from now on.

        Args:
            array: Its elements; None: those that its initializer draws.
            place: Where they lie; default: where it would have been made.
        """
        place = place or self.draw.place
        if array is None:
            array = context(place).from_host(self.draw.part([(0, n) for n in self.draw.shape]))
        trained = self.requires_grad
        self._value, self._meta = array, tensor_meta(LoDTensor, array.dtype, place)
        del self.draw
        self.__class__ = Parameter  # type: ignore[assignment]
        self.requires_grad = trained

    def set_value(self, value: Any) -> None:
        """Make it of these elements; see Tensor.set_value."""
        array = np.array(value.numpy() if isinstance(value, Tensor) else value, self._value.dtype)
        if array.shape != self.shape:
            raise InvalidArgumentError(
                f"set_value: {self.describe()} gets {array.dtype.name}{list(array.shape)}; expected shape "
                f"{list(self.shape)}"
            )
        self.make(context(self.draw.place).from_host(array))

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copy = super().__deepcopy__(memo)
        copy.draw = self.draw  # type: ignore[attr-defined]
        return copy

    def numpy(self) -> NoReturn:
        """Raise PreconditionNotMetError, since there are no elements."""
        raise PreconditionNotMetError(
            f"{self.describe()} was made inside deferred() and has no elements yet; make those of its net by "
            'net.to("cpu"), or each rank\'s part by parallel.to_global(net, placement, layouts)'
        )

    def __repr__(self) -> str:
        return f"<deferred {self.describe()}: {self.draw.initializer!r}>"


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Let parameters that are made inside hold no memory, so that a net may be larger than what one process can hold.

    with oprack.nn.deferred():
        net = Net()
    parallel.to_global(net, grid, {"*.weight": "split(0)"})  # each rank makes its part; or net.to("cpu"): all of it

    Their numbers are those that they would have had outside, for any number of ranks. Buffers are made at once. An
    initializer whose op draws in order (`in_order`, as those of the packs random and tensor but TruncatedNormal) needs
    memory for a part and a few MiB at a time; of another one the whole parameter is drawn, and then cut.
    """
    token = _DEFERRED.set(True)
    try:
        yield
    finally:
        _DEFERRED.reset(token)


class _GoingOn(RandomState):
    """Draws of a program that runs several times, each run going on where the last one stopped.

    Args:
        state: A RandomState's state, from which the first run draws.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        super().__init__()
        self.load_state(state)
        self._begun: dict[tuple[str, int, int], np.random.Generator] = {}
        self._calls: dict[tuple[str, int], int] = {}

    def again(self) -> None:
        """Another run begins."""
        self._calls.clear()

    def generator(self, op_key: str, seed: int = 0) -> np.random.Generator:
        """See RandomState."""
        call = self._calls.get((op_key, seed), 0)
        self._calls[op_key, seed] = call + 1
        key = (op_key, seed, call)
        if key not in self._begun:
            self._begun[key] = super().generator(op_key, seed)
        return self._begun[key]


class Draw:
    """How the elements of a parameter are drawn, later and in parts.

    Args:
        initializer: The initializer.
        shape: The dims of the parameter.
        dtype: Its dtype.
        name: Its name.
        place: Where it would have been made.

    Attributes:
        state: Seed and numbers of the draws, of RANDOM when the parameter was made; JSON can hold it.
    """

    def __init__(self, initializer: Initializer, shape: Sequence[int], dtype: str, name: str, place: Place) -> None:
        self.initializer, self.shape, self.dtype, self.name, self.place = initializer, tuple(shape), dtype, name, place
        before = RANDOM.state()
        # Draws are counted as if the parameter were made now, so that those after it are the same. What draws in order
        # is asked for one element; of the rest nobody knows how often it draws without running it.
        self._run(RANDOM, 1 if self._in_order else None)
        counts: Mapping[str, int] = RANDOM.state()["draws"]
        drawn = {k: before["draws"].get(k, 0) for k, n in counts.items() if n != before["draws"].get(k, 0)}
        self.state = {"seed": before["seed"], "draws": drawn}

    @property
    def _in_order(self) -> bool:
        """Whether the initializer says that its op draws in order; a subclass with another `__call__` says it anew."""
        kind = type(self.initializer)
        writer = next(c for c in kind.__mro__ if "__call__" in vars(c))
        return bool(getattr(kind, "in_order", False)) and "in_order" in vars(writer)

    def _run(self, random: RandomState, count: int | None) -> np.ndarray:
        """The first `count` elements, or all of them in the parameter's shape."""
        return filled(self.initializer, self.shape, self.dtype, self.name, CPU, random, count)  # type: ignore[no-any-return]

    def part(self, region: Region) -> np.ndarray:
        """The elements of a region, as `filled` draws them for the whole.

        Args:
            region: (start, stop) for each dim.

        Returns:
            A new array in host memory.
        """
        random = _GoingOn(self.state)
        index = tuple([slice(a, b) for a, b in region])
        if not self._in_order or math.prod(self.shape) <= _CHUNK:
            return self._run(random, None)[index].copy()
        # Leading dims are walked in chunks of as many rows as go; a row has the dims from k on.
        k = next(k for k in range(len(self.shape) + 1) if math.prod(self.shape[k:]) <= _CHUNK)
        lead, row = self.shape[:k], math.prod(self.shape[k:])
        part_lead, inner = [b - a for a, b in region[:k]], [b - a for a, b in region[k:]]
        made = np.empty((math.prod(part_lead), *inner), numpy_dtype(self.dtype))
        rows, left = math.prod(lead), len(made) if made.size else 0
        for first in range(0, rows, _CHUNK // row):
            if not left:
                break
            count = min(_CHUNK // row, rows - first)
            random.again()
            drawn = self._run(random, count * row).reshape(count, *self.shape[k:])
            at = np.unravel_index(np.arange(first, first + count), lead)
            wanted = np.ones(count, bool)
            for position, (start, stop) in zip(at, region, strict=False):
                wanted &= (position >= start) & (position < stop)
            if wanted.any():
                own = [position[wanted] - start for position, (start, _) in zip(at, region, strict=False)]
                made[np.ravel_multi_index(own, part_lead)] = drawn[wanted][(slice(None), *index[k:])]
                left -= int(wanted.sum())
        return made.reshape(*part_lead, *inner)


def filled(
    initializer: Initializer,
    shape: Sequence[int],
    dtype: str,
    name: str,
    place: Place = CPU,
    random: RandomState = RANDOM,
    count: int | None = None,
) -> Any:
    """Run an initializer and return the array; random initializers draw from the stream of `oprack.seed`.

    Args:
        initializer: The initializer.
        shape: Dims of the parameter.
        dtype: Its dtype.
        name: Its name.
        place: Where it is filled.
        random: What random initializers draw from.
        count: Of an initializer that draws in order, only so many elements, as one row.
    """
    program = Program()
    block = program.global_block()
    var = Variable(program, block, block.create_var(name, dtype=dtype, shape=tuple(shape), persistable=True))
    initializer(var)
    if count is not None:
        var.desc.shape = (count,)
        for op in block.ops:  # the one of Initializer.append
            op.attrs["shape"] = [count]
    scope = Scope()
    runner = executor(place, prepared=False)
    runner.random = random
    runner.run(program, scope=scope)
    return scope.get_var(name).get().array


def create_parameter(
    shape: Sequence[int],
    dtype: object = "float32",
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
    name: str = "parameter",
    place: Place | None = None,
) -> Parameter:
    """Create a parameter and initialize it; the default initializers are Xavier for weights and 0 for biases.

    Args:
        shape: Its dims.
        dtype: Its dtype.
        attr: Anything that ParamAttr.of accepts.
        is_bias: Whether it is a bias.
        default_initializer: The initializer, when `attr` has none.
        name: Prefix of the name when `attr` has none.
        place: The place whose memory holds it; default: the CPU.

    Returns:
        The parameter.

    Raises:
        InvalidArgumentError: `attr` is False, or a size is below 1.
    """
    param_attr = ParamAttr.of(attr)
    if param_attr is None or not all(isinstance(d, numbers.Integral) and d > 0 for d in shape):
        raise InvalidArgumentError(
            f"{name}: a parameter of shape {list(shape)} with attr {attr!r}; expected sizes greater than 0, and an "
            "attr other than False"
        )
    full_name = param_attr.name or unique_name.generate(f"{name}.{'b' if is_bias else 'w'}")
    place = place or home()
    initializer = param_attr.initializer or default_initializer or chosen(is_bias)
    parameter = Parameter.__new__(DeferredParameter if _DEFERRED.get() else Parameter)
    if isinstance(parameter, DeferredParameter):
        parameter.draw = Draw(initializer, shape, dtype_name(dtype), full_name, place)
        array, place = shape_array(parameter.draw.shape, numpy_dtype(parameter.draw.dtype)), _SHAPES
    else:
        array = filled(initializer, shape, dtype_name(dtype), full_name, place)
    parameter._value, parameter._meta, parameter._node = array, tensor_meta(LoDTensor, array.dtype, place), None
    parameter.name, parameter.attr = full_name, param_attr
    parameter.requires_grad = param_attr.trainable
    return parameter
