"""Methods of tensors that reduce dims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack.functional.generated import function_for
from oprack.packs.advice import refuse_others

if TYPE_CHECKING:
    from oprack.eager_tensor import Tensor

_ARGUMENTS = "axis, keepdim"


class Reductions:
    """The methods. axis: a dim or a list of dims, by default all; keepdim: keep them, with size 1."""

    __slots__: tuple[str, ...] = ()

    def sum(self, axis: Any = None, keepdim: bool = False, dtype: object = None, **other: Any) -> Tensor:
        """Adds up the elements over all dims or some.

        Args:
            axis: A dim or a list of dims; None: all.
            keepdim: Whether reduced dims stay, with size 1.
            dtype: The dtype to which elements are cast before they are added; None: their own.
            other: NumPy's and PyTorch's names of the parameters, which are refused with advice.

        Returns:
            The sums.

        Raises:
            TypeError: There is no argument of that name; the message says which to write.
        """
        if other:
            refuse_others("sum", _ARGUMENTS, other)
        x: Any = self if dtype is None else self.astype(dtype)  # type: ignore[attr-defined]
        return _reduced("sum_along", x, axis, keepdim)

    def mean(self, axis: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Takes the mean of the elements over all dims or some.

        Args:
            axis: A dim or a list of dims; None: all.
            keepdim: Whether reduced dims stay, with size 1.
            other: NumPy's and PyTorch's names of the parameters, which are refused with advice.

        Returns:
            The means.

        Raises:
            TypeError: There is no argument of that name; the message says which to write.
        """
        if other:
            refuse_others("mean", _ARGUMENTS, other)
        return _reduced("mean_along", self, axis, keepdim)

    def max(self, axis: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Takes the largest element over all dims or some; argmax says where it is.

        Args:
            axis: A dim or a list of dims; None: all.
            keepdim: Whether reduced dims stay, with size 1.
            other: NumPy's and PyTorch's names of the parameters, which are refused with advice.

        Returns:
            The maxima.

        Raises:
            TypeError: There is no argument of that name; the message says which to write.
        """
        if other:
            refuse_others("max", _ARGUMENTS, other)
        return _reduced("max_along", self, axis, keepdim)

    def min(self, axis: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Takes the smallest element over all dims or some; argmin says where it is.

        Args:
            axis: A dim or a list of dims; None: all.
            keepdim: Whether reduced dims stay, with size 1.
            other: NumPy's and PyTorch's names of the parameters, which are refused with advice.

        Returns:
            The minima.

        Raises:
            TypeError: There is no argument of that name; the message says which to write.
        """
        if other:
            refuse_others("min", _ARGUMENTS, other)
        return _reduced("min_along", self, axis, keepdim)

    def prod(self, axis: Any = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Multiplies the elements over all dims or some.

        Args:
            axis: A dim or a list of dims; None: all.
            keepdim: Whether reduced dims stay, with size 1.
            other: NumPy's and PyTorch's names of the parameters, which are refused with advice.

        Returns:
            The products.

        Raises:
            TypeError: There is no argument of that name; the message says which to write.
        """
        if other:
            refuse_others("prod", _ARGUMENTS, other)
        return _reduced("product_along", self, axis, keepdim)

    def argmax(self, axis: int | None = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Finds the place of the largest element along a dim, or among all elements.

        Args:
            axis: The dim; None: of the flattened tensor.
            keepdim: Whether reduced dims stay, with size 1.
            other: NumPy's and PyTorch's names of the parameters, which are refused with advice.

        Returns:
            Tensor of int64.

        Raises:
            TypeError: There is no argument of that name; the message says which to write.
        """
        if other:
            refuse_others("argmax", _ARGUMENTS, other)
        return _place("argmax_along", self, axis, keepdim)

    def argmin(self, axis: int | None = None, keepdim: bool = False, **other: Any) -> Tensor:
        """Finds the place of the smallest element along a dim, or among all elements.

        Args:
            axis: The dim; None: of the flattened tensor.
            keepdim: Whether reduced dims stay, with size 1.
            other: NumPy's and PyTorch's names of the parameters, which are refused with advice.

        Returns:
            Tensor of int64.

        Raises:
            TypeError: There is no argument of that name; the message says which to write.
        """
        if other:
            refuse_others("argmin", _ARGUMENTS, other)
        return _place("argmin_along", self, axis, keepdim)


def _reduced(role: str, x: Any, axis: Any, keepdim: bool) -> Tensor:
    if axis is None:
        found = function_for(role)(x, reduce_all=True, keep_dim=keepdim)
    else:
        dims = [int(a) for a in axis] if isinstance(axis, list | tuple) else [int(axis)]
        found = function_for(role)(x, dim=dims, keep_dim=keepdim)
    return found  # type: ignore[no-any-return]


def _place(role: str, x: Any, axis: int | None, keepdim: bool) -> Tensor:
    if axis is None:
        flat = function_for("merge_dims")(x, start_axis=0, stop_axis=-1) if x.ndim > 1 else x
        found = function_for(role)(flat, axis=0, keepdims=False, dtype="int64")
        return found.reshape([1] * x.ndim) if keepdim else found  # type: ignore[no-any-return]
    return function_for(role)(x, axis=axis, keepdims=keepdim, dtype="int64")  # type: ignore[no-any-return]
