"""Methods of tensors: each is a call of an op of oprack.functional."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.errors import InvalidArgumentError
from oprack.functional.creation import to_tensor
from oprack.functional.generated import function as function_of
from oprack.functional.generated import function_for
from oprack.functional.op_function import op_function
from oprack.functional.op_methods import OpMethods
from oprack.functional.tensor_index import get_item, set_item
from oprack.functional.tensor_operators import array_operand, operator
from oprack.functional.tensor_reductions import Reductions
from oprack.functional.written import offer_methods
from oprack.layers.operators import Operators
from oprack.layers.promotion import RANGES, rounded_by_attribute
from oprack.layers.variable import Variable
from oprack.op.signature import snake_case
from oprack.packs.vocabulary import op_for
from oprack.types import dtype_enum, dtype_name


class SharedMethods(Reductions, Operators, OpMethods):
    """Methods of tensors and of Variables alike: each is a call of an op."""

    def _operand(self, other: Any, role: str) -> Any:
        """An array or a list beside a tensor of a captured function: a constant of its program."""
        found = to_tensor(other) if isinstance(other, np.ndarray | list) else other
        return found if found is not other else Operators._operand(self, other, role)

    def _apply(
        self, op_type: str, inputs: dict[str, Any], attrs: dict[str, Any], slots: tuple[str, ...] = ("Out",)
    ) -> Any:
        names = op_function(op_type).names
        result = function_of(op_type)(**{names[slot]: value for slot, value in inputs.items()}, **attrs)
        return getattr(result, snake_case(slots[0])) if isinstance(result, tuple) else result

    # Shapes and dtypes ------------------------------------------------------------------------------------------------
    def astype(self, dtype: object) -> Tensor:  # type: ignore[override]
        """Casts the elements to another dtype.

        Args:
            dtype: The name of the dtype, such as "float32", or one of NumPy's.

        Returns:
            Tensor of the same shape.
        """
        x: Any = self
        name = dtype_name(dtype)
        found: Tensor = function_for("convert")(x, in_dtype=int(dtype_enum(x.dtype)), out_dtype=int(dtype_enum(name)))
        return found

    def cast(self, dtype: object = None, **attrs: Any) -> Tensor:
        """Casts the elements to another dtype.

        Args:
            dtype: The dtype; None: as the attributes say.
            attrs: Attributes of op cast, in place of dtype.

        Returns:
            Tensor of the same shape.
        """
        return function_for("convert")(self, **attrs) if dtype is None else self.astype(dtype)

    def clone(self) -> Tensor:
        """A copy, through which gradients flow."""
        found: Tensor = function_for("copy")(self)
        return found

    def reshape(self, *sizes: Any, shape: Any = None) -> Tensor:
        """Gives the elements another shape.

        Args:
            sizes: The sizes, one by one or as one list; one may be -1, the size that is left over, and 0 keeps that of
                the same dim.
            shape: The sizes as a list, by keyword.

        Returns:
            Tensor of that shape.
        """
        found: Tensor = function_for("change_shape")(self, shape=_ints(sizes, shape))
        return found

    def transpose(self, *axes: Any, perm: Any = None) -> Tensor:
        """Reorders the dims: as a list says, or, given two numbers, by swapping these two; without arguments reversed.

        Args:
            axes: The order, as numbers or a list.
            perm: The order as a list, by keyword.

        Returns:
            Tensor with reordered dims.

        Raises:
            InvalidArgumentError: The call is `x.transpose(0, 1)` of two dims, which PyTorch swaps and NumPy leaves
                alone.
        """
        order = _ints(axes, perm)
        if len(axes) == 2 and not (self.ndim == 2 and order in ([1, 0], [-1, -2])):
            a, b = (i + self.ndim if i < 0 else i for i in order)
            if self.ndim == 2 and a != b:
                raise InvalidArgumentError(
                    f"transpose({axes[0]}, {axes[1]}) of shape {list(self.shape)}: swap the dims with x.T, or keep "
                    f"their order with x.transpose([{axes[0]}, {axes[1]}])"
                )
            if not (0 <= a < self.ndim and 0 <= b < self.ndim):
                raise InvalidArgumentError(
                    f"transpose({axes[0]}, {axes[1]}) of shape {list(self.shape)}; expected two of its {self.ndim} "
                    "dims to swap, or a list with all of them"
                )
            order = list(range(self.ndim))
            order[a], order[b] = order[b], order[a]
        found: Tensor = function_for("permute_dims")(self, axis=order or list(range(self.ndim))[::-1])
        return found

    @property
    def T(self) -> Tensor:
        """Dims in reversed order."""
        return self.transpose()

    def squeeze(self, *axes: Any, axis: Any = None) -> Tensor:
        """Removes dims of size 1.

        Args:
            axes: The dims, one by one or as one list; none: all of size 1.
            axis: A dim or a list, by keyword.

        Returns:
            Tensor with fewer dims.
        """
        found: Tensor = function_for("remove_dims")(self, axes=_ints(axes, axis))
        return found

    def unsqueeze(self, *axes: Any, axis: Any = None) -> Tensor:
        """Inserts dims of size 1.

        Args:
            axes: Their places in the result, one by one or as one list.
            axis: A place or a list, by keyword.

        Returns:
            Tensor with more dims.
        """
        found: Tensor = function_for("insert_dims")(self, axes=_ints(axes, axis))
        return found

    def flatten(self, start_axis: int = 0, stop_axis: int = -1) -> Tensor:
        """Merges neighbouring dims into one.

        Args:
            start_axis: The first dim.
            stop_axis: The last dim.

        Returns:
            Tensor with fewer dims.
        """
        found = function_for("merge_dims")(self, start_axis=start_axis, stop_axis=stop_axis)
        return found  # type: ignore[no-any-return]

    def tile(self, *times: Any, repeat_times: Any = None) -> Tensor:
        """Repeats the tensor along its dims.

        Args:
            times: How often along each dim, one by one or as one list.
            repeat_times: How often, as a list, by keyword.

        Returns:
            Tensor of the repeated size.
        """
        found: Tensor = function_for("repeat_dims")(self, repeat_times=_ints(times, repeat_times))
        return found

    def expand(self, *sizes: Any, shape: Any = None) -> Tensor:
        """Broadcasts to a shape.

        Args:
            sizes: The sizes, one by one or as one list; -1 keeps a dim.
            shape: The sizes as a list, by keyword.

        Returns:
            Tensor of that shape.
        """
        found: Tensor = function_for("broadcast_to")(self, shape=_ints(sizes, shape))
        return found

    # Parts ------------------------------------------------------------------------------------------------------------
    def split(self, num_or_sections: Any = None, axis: int = 0, **attrs: Any) -> list[Tensor]:
        """Cuts into parts along a dim.

        Args:
            num_or_sections: The number of parts, which are equal, or a list of their sizes, one of which may be -1.
            axis: The dim.
            attrs: Attributes of op split.

        Returns:
            List of tensors.
        """
        if isinstance(num_or_sections, list | tuple):
            attrs["sections"] = [int(n) for n in num_or_sections]
        elif num_or_sections is not None:
            attrs["num"] = int(num_or_sections)
        return function_for("split_dim")(self, axis=axis, **attrs)  # type: ignore[no-any-return]

    def unbind(self, axis: int = 0, **attrs: Any) -> list[Tensor]:
        """Cuts into the slices along a dim, which they lose.

        Args:
            axis: The dim.
            attrs: Attributes of op unbind.

        Returns:
            List of tensors.
        """
        return function_for("unbind_dim")(self, axis=axis, **attrs)  # type: ignore[no-any-return]

    def gather(self, index: Any, axis: int = 0, **attrs: Any) -> Tensor:
        """The slices at these places of a dim, as NumPy's take.

        Args:
            index: Integers [N].
            axis: The dim.
            attrs: Attributes of the op.

        Returns:
            The tensor.

        Raises:
            InvalidArgumentError: The call is PyTorch's `x.gather(dim, index)`, which means something else.
        """
        if isinstance(index, int) and not isinstance(axis, int):
            raise InvalidArgumentError(
                f"gather({index}, tensor): index is a number and axis a tensor; for one element at each place write "
                f"x.take_along_axis(tensor, {index}), for whole slices x.gather(tensor, {index})"
            )
        return function_for("rows_at")(self, index, axis=axis, **attrs)  # type: ignore[no-any-return]

    # Values -----------------------------------------------------------------------------------------------------------
    def clip(self, min: Any = None, max: Any = None, **attrs: Any) -> Tensor:
        """Cut to between two numbers, by op clip.

        Args:
            min: The lower bound, a number or a tensor of one element; None: no bound.
            max: The upper bound.
            attrs: Attributes of the op.

        Returns:
            The tensor.

        Raises:
            InvalidArgumentError: There is no bound.
        """
        if min is None and max is None and not attrs:
            raise InvalidArgumentError("clip: min and max are None; expected a number for at least one of them")
        x: Any = self
        if x.dtype in RANGES and (min is None) != (max is None):  # infinity is no integer
            bound = max if min is None else min
            if not isinstance(bound, Tensor | Variable):
                one = {"shape": [1] if x.shape else [], "value": float(bound), "str_value": str(int(bound))}
                bound = function_for("constant")(dtype=x.dtype, **one)
                bound = bound.to(x.place) if isinstance(x, Tensor) else bound
            return function_for("smaller" if min is None else "larger")(x, bound)  # type: ignore[no-any-return]
        for slot, bound, none in (("min", min, -math.inf), ("max", max, math.inf)):
            if rounded_by_attribute(x.dtype, bound):  # by the attribute, which is float32
                one = {"shape": [1], "value": float(bound), "str_value": repr(bound)}
                bound = function_for("constant")(dtype=x.dtype, **one)
                bound = bound.to(x.place) if isinstance(x, Tensor) else bound
            is_tensor = isinstance(bound, Tensor | Variable)
            attrs[slot] = none if bound is None or is_tensor else float(bound)
            if is_tensor:
                attrs[f"{slot}_input"] = bound
        return function_for("clamp")(self, **attrs)  # type: ignore[no-any-return]

    def pow(self, y: Any = None, **attrs: Any) -> Tensor:
        """Raises elements to a power, `self ** y`.

        Args:
            y: The exponent, a number or a tensor that broadcasts; None: as the attributes say.
            attrs: Attributes of op pow, in place of y.

        Returns:
            Tensor of the broadcast shape.
        """
        found: Any = function_for("number_power")(self, **attrs) if y is None else self**y
        return found  # type: ignore[no-any-return]

    def softmax(self, axis: int = -1, **attrs: Any) -> Tensor:
        r"""Normalizes along a dim to positive numbers of sum 1, $$e^{x_i} / \sum_j e^{x_j}$$.

        Args:
            axis: The dim.
            attrs: Attributes of op softmax.

        Returns:
            Tensor of the same shape and dtype.
        """
        return function_for("softmax_along")(self, axis=axis, **attrs)  # type: ignore[no-any-return]


offer_methods(Reductions.__dict__ | SharedMethods.__dict__)


class TensorMethods(SharedMethods):
    """Methods of tensors alone."""

    __add__, __radd__ = operator("add", "__add__")
    __sub__, __rsub__ = operator("subtract", "__sub__")
    __mul__, __rmul__ = operator("multiply", "__mul__")
    __truediv__, __rtruediv__ = operator("divide", "__truediv__")
    __pow__, __rpow__ = operator("power", "__pow__")
    __floordiv__, __rfloordiv__ = operator("floor_divide", "__floordiv__")
    __mod__, __rmod__ = operator("modulo", "__mod__")
    __matmul__, _ = operator("matrix_product", "__matmul__")
    __lt__, _ = operator("less", "__lt__")
    __le__, _ = operator("less_or_equal", "__le__")
    __gt__, _ = operator("greater", "__gt__")
    __ge__, _ = operator("greater_or_equal", "__ge__")
    __eq__, _ = operator("equals", "__eq__")
    __ne__, _ = operator("differs", "__ne__")
    __hash__ = object.__hash__
    del _

    def __rmatmul__(self, other: Any) -> Any:
        other = array_operand(self, other)
        return other if other is NotImplemented else other @ self

    # Indexing ---------------------------------------------------------------------------------------------------------
    def __getitem__(self, index: Any) -> Tensor:  # type: ignore[override]
        """x[2], x[1:3], x[..., 0], x[None], x[mask], x[[0, 2]]; gradients flow back through it."""
        return get_item(self, index)  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write into this tensor; recorded when it, or the value, wants a gradient."""
        set_item(self, index, value)

    # In place ---------------------------------------------------------------------------------------------------------
    def add_(self, other: Any) -> Tensor:
        """self += other, in this tensor's memory."""
        return _in_place("add", self, other)

    def sub_(self, other: Any) -> Tensor:
        """self -= other, in this tensor's memory."""
        return _in_place("subtract", self, other)

    def scale_(self, scale: float = 1.0, bias: float = 0.0) -> Tensor:
        """scale * self + bias, in this tensor's memory."""
        found: Tensor = function_for("affine")(self, scale=float(scale), bias=float(bias), in_place=True)
        return found

    def fill_(self, value: Any) -> Tensor:
        """A number everywhere, in this tensor's memory."""
        self.set_value(np.full(self.shape, value, self._meta.dtype))
        return self  # type: ignore[return-value]

    def copy_(self, other: Any, blocking: bool = True) -> Tensor:
        """The values of a tensor or array of the same shape, in this tensor's memory; it always waits."""
        self.set_value(other)
        return self  # type: ignore[return-value]

    def zero_(self) -> Tensor:
        """Zeros, in this tensor's memory."""
        self.set_value(np.zeros(self.shape, self._meta.dtype))
        return self  # type: ignore[return-value]


def _ints(given: tuple[Any, ...], named: Any = None) -> list[Any]:
    """Numbers given one by one, as one list, or by keyword; Variables hold those of run time."""
    if named is not None:
        given = (*given, named)
    items = given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given
    return [i if isinstance(i, Variable) else int(i) for i in items]


def _in_place(role: str, x: Any, other: Any) -> Tensor:
    operand = other if isinstance(other, Tensor | Variable) else type(x).like(other, x)
    if operand.shape != x.shape and len(operand.shape) > len(x.shape):
        raise InvalidArgumentError(
            f"op {op_for(role)} in place: {x.describe()} can't hold a result of shape {list(operand.shape)}"
        )
    found: Tensor = function_for(role)(x, operand, in_place=True)
    return found
