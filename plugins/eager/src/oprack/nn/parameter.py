"""Parameter: a tensor that optimizers update, and its creation by an initializer."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from oprack.eager_tensor.devices import executor, home
from oprack.eager_tensor.meta import CPU, tensor_meta
from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import Tensor, to_tensor
from oprack.layers import unique_name
from oprack.layers.variable import Initializer, ParamAttr, Variable
from oprack.layers.variable import default_initializer as chosen
from oprack.program import Program
from oprack.tensor import LoDTensor, Place, Scope
from oprack.types import dtype_name


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


def filled(initializer: Initializer, shape: Sequence[int], dtype: str, name: str, place: Place = CPU) -> Any:
    """Run an initializer and return the array; random initializers draw from the stream of `oprack.seed`."""
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
    array = filled(initializer, shape, dtype_name(dtype), full_name, place)
    parameter = Parameter.__new__(Parameter)
    parameter._value, parameter._meta, parameter._node = array, tensor_meta(LoDTensor, array.dtype, place), None
    parameter.name, parameter.attr = full_name, param_attr
    parameter.requires_grad = param_attr.trainable
    return parameter
