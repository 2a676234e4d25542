"""Parameter: a tensor that is trained, filled by an initializer."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import Tensor, to_tensor
from oprack.interpreter.devices import executor
from oprack.layers import unique_name
from oprack.layers.initializer import Initializer
from oprack.layers.initializer import default_initializer as chosen
from oprack.layers.param_attr import ParamAttr
from oprack.layers.variable import Variable
from oprack.program import Program
from oprack.tensor import LoDTensor, Place, Scope
from oprack.tensor.meta import CPU, tensor_meta
from oprack.types import dtype_name


class Parameter(Tensor):
    """A tensor that training changes, of an array's values: `net.scale = oprack.Parameter(array)`.

    Args:
        data: What `oprack.to_tensor` takes, of a floating dtype.
        name: The name in programs and states of optimizers; default: a new one.
        trainable: Whether optimizers change it.

    Raises:
        InvalidArgumentError: The data has no gradient, as integers.
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
        copied = super().__deepcopy__(memo)
        copied.attr = self.attr  # type: ignore[attr-defined]
        return copied

    @property
    def trainable(self) -> bool:
        """Whether optimizers change it."""
        return self.requires_grad

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.requires_grad = value


def filled(initializer: Initializer, shape: Sequence[int], dtype: str, name: str, place: Place = CPU) -> Any:
    """An array that an initializer made; random ones go on with the numbers of `oprack.seed`."""
    program = Program()
    block = program.global_block()
    var = Variable(program, block, block.create_var(name, dtype=dtype, shape=tuple(shape), persistable=True))
    initializer(var)
    scope = Scope()
    executor(place, prepared=False).run(program, scope=scope)
    return scope.get_var(name).get().array


def create_parameter(
    shape: Sequence[int],
    dtype: object = "float32",
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
    name: str = "parameter",
    place: Place = CPU,
) -> Parameter:
    """A parameter, filled by its initializer: Xavier for weights and 0 for biases where nothing else is said.

    Args:
        shape: Its sizes.
        dtype: Its dtype.
        attr: What ParamAttr.of takes.
        is_bias: Whether it is a bias.
        default_initializer: The initializer, when `attr` has none.
        name: Begins the name when `attr` has none.
        place: Where it lies.

    Returns:
        The parameter.

    Raises:
        InvalidArgumentError: `attr` is False, or a size is below 1.
    """
    made = ParamAttr.of(attr)
    if made is None or not all(isinstance(d, numbers.Integral) and d > 0 for d in shape):
        raise InvalidArgumentError(
            f"{name}: a parameter of shape {list(shape)} with attr {attr!r}; expected sizes greater than 0, and an "
            "attr other than False"
        )
    full = made.name or unique_name.generate(f"{name}.{'b' if is_bias else 'w'}")
    initializer = made.initializer or default_initializer or chosen(is_bias)
    array = filled(initializer, shape, dtype_name(dtype), full, place)
    found = Parameter.__new__(Parameter)
    found._value, found._meta, found._node = array, tensor_meta(LoDTensor, array.dtype, place), None
    found.name, found.attr = full, made
    found.requires_grad = made.trainable
    return found
