"""Operators, indexing and methods of tensors: each is a call of an op of oprack.functional."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import InvalidArgumentError, UnknownOpError
from oprack.interpreter.current import current_or_none
from oprack.interpreter.op_expr import attr_key
from oprack.layers.operators import Operators
from oprack.layers.promotion import EXACT, RANGES, dtype_beside_number
from oprack.op import param_name
from oprack.types import dtype_enum, dtype_name

if TYPE_CHECKING:
    from oprack.interpreter.tensor import Tensor

_NUMBERS = (int, float, bool, complex, np.generic, numbers.Number)


made: dict[str, Callable[..., Any]] = {}
"""Functions by op, as oprack.interpreter.functions makes them."""


def _call(op_type: str) -> Callable[..., Any]:
    found = made.get(op_type)
    if found is None:
        from oprack.interpreter.functions import function

        found = function(op_type)
    return found


scales: dict[Any, Callable[..., Any]] = {}
"""Generated functions of op scale by mode, kind and numbers."""


def _scaled(x: Any, scale: float, bias: float) -> Any:
    key = (current_or_none(), x._kind, scale, bias)
    call = scales.get(key)
    if call is not None:
        return call(x)
    attrs = {"scale": scale, "bias": bias}
    result = (made.get("scale") or _call("scale"))(x, **attrs)
    if scale and (bias or scale != 1.0):  # 0.0 is equal to -0.0, but not the same
        from oprack.interpreter.call import op_function

        call = op_function("scale").table.get((*key[:2], *attr_key(attrs)))
        if call is not None:
            if len(scales) >= 256:
                scales.clear()
            scales[key] = call
    return result


# x op number, and number op x where it differs, as one `scale`
_BY_NUMBER: dict[str, tuple[Callable[[Any, float], Any], Callable[[Any, float], Any] | None]] = {
    "add": (lambda x, n: _scaled(x, 1.0, n), lambda x, n: _scaled(x, 1.0, n)),
    "sub": (lambda x, n: _scaled(x, 1.0, -n), lambda x, n: _scaled(x, -1.0, n)),
    "mul": (lambda x, n: _scaled(x, n, 0.0), lambda x, n: _scaled(x, n, 0.0)),
    "truediv": (lambda x, n: _scaled(x, 1.0 / n, 0.0) if n else NotImplemented, None),
}


_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne", "floordiv", "mod")
_constants: dict[Any, Any] = {}


def _constant_of(x: Any, number: float) -> Any:
    """A tensor of one element, kept for the next time."""
    from oprack.interpreter.tensor import to_tensor

    key = (x._kind.dtype, x._kind.place, x.ndim > 0, repr(number))
    found = _constants.get(key)
    if found is None:
        if len(_constants) >= 256:
            _constants.clear()
        array = np.full((1,) if x.ndim else (), number, x._kind.dtype)
        found = _constants[key] = to_tensor(array, place=x.place)
    return found


def _operator(op_type: str, name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """`a op b` and `b op a`: at once for two tensors of one dtype, else as operators on Variables do it."""
    general = getattr(Operators, f"__{name}__")
    reversed_ = getattr(Operators, f"__r{name}__", None)
    by_number, number_by = _BY_NUMBER.get(name, (None, None))
    any_dtype = name not in ("truediv", "pow")  # integers need a conversion, or a look at their values

    def forward(self: Any, other: Any) -> Any:
        kind = getattr(other, "_kind", None)
        if (type(other) is float or type(other) is int) and by_number is not None and self._kind.differentiable:
            found = by_number(self, float(other))
            return general(self, other) if found is NotImplemented else found
        if type(other) is int and by_number is not None and any_dtype and _fits(self._kind.name, other):
            return by_number(self, float(other))
        if kind is not None and kind.dtype is self._kind.dtype and (any_dtype or kind.differentiable):
            return (made.get(op_type) or _call(op_type))(self, other)
        if kind is None and type(other) in (float, int) and self._kind.differentiable and name in _COMPARED:
            return (made.get(op_type) or _call(op_type))(self, _constant_of(self, float(other)))
        if kind is None and (not isinstance(other, _NUMBERS) or isinstance(other, complex | np.complexfloating)):
            other = _array_operand(self, other)
            if other is NotImplemented:
                return other
        if name == "pow" and isinstance(other, TensorMethods):
            _require_whole_power(self, other)
        return general(self, other)

    def backward(self: Any, other: Any) -> Any:
        if type(other) in (float, int) and number_by is not None and self._kind.differentiable:
            return number_by(self, float(other))
        if not isinstance(other, _NUMBERS) or isinstance(other, complex | np.complexfloating):
            other = _array_operand(self, other)
            if other is NotImplemented:
                return other
            return getattr(other, f"__{name}__")(self)
        if name == "pow":
            _require_whole_power(other, self)
        return reversed_(self, other) if reversed_ is not None else NotImplemented

    return forward, backward


def _fits(dtype: Any, number: int) -> bool:
    """Whether an integer dtype holds a number, and float32 does as well."""
    limits = RANGES.get(dtype)
    return limits is not None and limits[0] <= number <= limits[1] and -EXACT <= number <= EXACT


def _require_whole_power(base: Any, exponent: Any) -> None:
    """Raise InvalidArgumentError for integers to the power of negative ones; on a GPU the look would wait for it."""
    whole = base._kind.dtype.kind in "iub" if isinstance(base, TensorMethods) else isinstance(base, numbers.Integral)
    if whole and exponent._kind.dtype.kind == "i" and exponent.place.kind == "cpu" and (exponent._value < 0).any():
        raise InvalidArgumentError(
            f"op elementwise_pow: the exponent {exponent.describe()} holds negative numbers and the base is an "
            "integer, whose power would have fractions; cast the exponent first: n.astype('float32')"
        )


@cache
def _index() -> Any:
    from oprack.interpreter import index

    return index


def _array_operand(self: Any, other: Any) -> Any:
    from oprack.interpreter.tensor import to_tensor

    if isinstance(other, TensorMethods):
        return other
    if isinstance(other, complex | np.complexfloating):
        dtype = dtype_beside_number(self.dtype, other, "")
        return to_tensor(np.full([1] * min(self.ndim, 1), other), dtype, place=self.place)
    if isinstance(other, np.ndarray | list) or hasattr(other, "__cuda_array_interface__"):
        return to_tensor(other, place=self.place)
    return NotImplemented


class SharedMethods(Operators):
    """Methods of tensors and of Variables alike: each is a call of an op.

    Every op whose first input is a tensor is a method, too: `x.relu()`, `x.softmax(axis=0)`.
    """

    __slots__ = ()

    def _apply(
        self, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], slots: tuple[str, ...] = ("Out",)
    ) -> Any:
        given = {param_name(slot): value for slot, value in inputs.items()}
        result = _call(op_type)(**given, **attrs)
        return getattr(result, param_name(slots[0])) if isinstance(result, tuple) else result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        try:
            function = _call(name)
        except UnknownOpError as error:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute or op {name!r}") from error
        return lambda *args, **attrs: function(self, *args, **attrs)

    # Shapes and dtypes ------------------------------------------------------------------------------------------------
    def astype(self, dtype: object) -> Tensor:  # type: ignore[override]
        """The values as another dtype: op cast."""
        x: Any = self
        name = dtype_name(dtype)
        found: Tensor = _call("cast")(x, in_dtype=int(dtype_enum(x.dtype)), out_dtype=int(dtype_enum(name)))
        return found

    def clone(self) -> Tensor:
        """A copy, through which gradients flow: op assign."""
        found: Tensor = _call("assign")(self)
        return found

    def reshape(self, *shape: Any) -> Tensor:
        """The elements in another shape, one dim of which may be -1; 0 keeps the dim: op reshape2."""
        found: Tensor = _call("reshape2")(self, shape=_ints(shape))
        return found

    def transpose(self, *axes: Any) -> Tensor:
        """Dims in another order, default reversed: op transpose2."""
        order = _ints(axes) or list(range(self.ndim))[::-1]
        found: Tensor = _call("transpose2")(self, axis=order)
        return found

    @property
    def T(self) -> Tensor:
        """Dims in reversed order."""
        return self.transpose()

    def squeeze(self, *axes: Any) -> Tensor:
        """Without dims of size 1, all or these: op squeeze2."""
        found: Tensor = _call("squeeze2")(self, axes=_ints(axes))
        return found

    def unsqueeze(self, *axes: Any) -> Tensor:
        """With new dims of size 1: op unsqueeze2."""
        found: Tensor = _call("unsqueeze2")(self, axes=_ints(axes))
        return found

    def flatten(self, start_axis: int = 0, stop_axis: int = -1) -> Tensor:
        """Dims from start_axis to stop_axis as one: op flatten_contiguous_range."""
        found = _call("flatten_contiguous_range")(self, start_axis=start_axis, stop_axis=stop_axis)
        return found  # type: ignore[no-any-return]

    # Reductions -------------------------------------------------------------------------------------------------------
    def sum(self, axis: Any = None, keepdim: bool = False) -> Tensor:
        """Over all dims, or over these: op reduce_sum."""
        return _reduced("reduce_sum", self, axis, keepdim)

    def mean(self, axis: Any = None, keepdim: bool = False) -> Tensor:
        """Over all dims, or over these: op reduce_mean."""
        return _reduced("reduce_mean", self, axis, keepdim)

    def max(self, axis: Any = None, keepdim: bool = False) -> Tensor:
        """Over all dims, or over these: op reduce_max."""
        return _reduced("reduce_max", self, axis, keepdim)

    def min(self, axis: Any = None, keepdim: bool = False) -> Tensor:
        """Over all dims, or over these: op reduce_min."""
        return _reduced("reduce_min", self, axis, keepdim)

    def prod(self, axis: Any = None, keepdim: bool = False) -> Tensor:
        """Over all dims, or over these: op reduce_prod."""
        return _reduced("reduce_prod", self, axis, keepdim)

    def argmax(self, axis: int = -1, keepdim: bool = False) -> Tensor:
        """Where the largest element of a dim is: op arg_max."""
        found: Tensor = _call("arg_max")(self, axis=axis, keepdims=keepdim, dtype="int64")
        return found

    def argmin(self, axis: int = -1, keepdim: bool = False) -> Tensor:
        """Where the smallest element of a dim is: op arg_min."""
        found: Tensor = _call("arg_min")(self, axis=axis, keepdims=keepdim, dtype="int64")
        return found


class TensorMethods(SharedMethods):
    """Base of Tensor."""

    __slots__ = ()

    __add__, __radd__ = _operator("elementwise_add", "add")
    __sub__, __rsub__ = _operator("elementwise_sub", "sub")
    __mul__, __rmul__ = _operator("elementwise_mul", "mul")
    __truediv__, __rtruediv__ = _operator("elementwise_div", "truediv")
    __pow__, __rpow__ = _operator("elementwise_pow", "pow")
    __floordiv__, __rfloordiv__ = _operator("elementwise_floordiv", "floordiv")
    __mod__, __rmod__ = _operator("elementwise_mod", "mod")
    __matmul__, _ = _operator("matmul_v2", "matmul")
    __lt__, _ = _operator("less_than", "lt")
    __le__, _ = _operator("less_equal", "le")
    __gt__, _ = _operator("greater_than", "gt")
    __ge__, _ = _operator("greater_equal", "ge")
    __eq__, _ = _operator("equal", "eq")
    __ne__, _ = _operator("not_equal", "ne")
    __hash__ = object.__hash__
    del _

    def __rmatmul__(self, other: Any) -> Any:
        other = _array_operand(self, other)
        return other if other is NotImplemented else other @ self

    # Indexing ---------------------------------------------------------------------------------------------------------
    def __getitem__(self, index: Any) -> Tensor:  # type: ignore[override]
        """x[2], x[1:3], x[..., 0], x[None], x[mask], x[[0, 2]]; gradients flow back through it."""
        return _index().get_item(self, index)  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write into this tensor; recorded when it, or the value, wants a gradient."""
        _index().set_item(self, index, value)

    # In place ---------------------------------------------------------------------------------------------------------
    def add_(self, other: Any) -> Tensor:
        """self += other, in this tensor's memory: op elementwise_add in place."""
        return _in_place("elementwise_add", self, other)

    def sub_(self, other: Any) -> Tensor:
        """self -= other, in this tensor's memory: op elementwise_sub in place."""
        return _in_place("elementwise_sub", self, other)

    def scale_(self, scale: float = 1.0, bias: float = 0.0) -> Tensor:
        """scale * self + bias, in this tensor's memory: op scale in place."""
        found: Tensor = _call("scale")(self, scale=float(scale), bias=float(bias), in_place=True)
        return found

    def zero_(self) -> Tensor:
        """Zeros, in this tensor's memory."""
        self.set_value(np.zeros(self.shape, self._kind.dtype))
        return self  # type: ignore[return-value]


def _ints(given: tuple[Any, ...]) -> list[int]:
    """Numbers given one by one, or as one list."""
    items = given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given
    return [int(i) for i in items]


def _reduced(op_type: str, x: Any, axis: Any, keepdim: bool) -> Tensor:
    if axis is None:
        found = _call(op_type)(x, reduce_all=True, keep_dim=keepdim)
    else:
        dims = [int(a) for a in axis] if isinstance(axis, list | tuple) else [int(axis)]
        found = _call(op_type)(x, dim=dims, keep_dim=keepdim)
    return found  # type: ignore[no-any-return]


def _in_place(op_type: str, x: Any, other: Any) -> Tensor:
    operand = other if isinstance(other, TensorMethods) else type(x).like(other, x)
    if operand.shape != x.shape and len(operand.shape) > len(x.shape):
        raise InvalidArgumentError(
            f"op {op_type} in place: {x.describe()} can't hold a result of shape {list(operand.shape)}"
        )
    found: Tensor = _call(op_type)(x, operand, in_place=True)
    return found
