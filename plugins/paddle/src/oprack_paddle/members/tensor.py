"""Methods of tensors: the functions of paddle and paddle.linalg, and those that tensors alone have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import oprack
from oprack import functional as F
from oprack.functional.op_methods import prefer
from oprack.functional.tensor import Tensor
from oprack.functional.written import written
from oprack.layers import Variable
from oprack.names.paddle import signatures

from oprack_paddle.adapter import agrees, parameters
from oprack_paddle.functions._tools import dtype_name

_SPACES = ("", "linalg", "nn.functional", "signal")
_WRITTEN = "oprack_paddle.functions"
_NO_METHODS = frozenset(["T", "grad", "shape", "size", "data", "name", "place", "dtype", "type", "layout", "block"])


def install(lookup: Callable[[str, str], Any]) -> None:
    """Give tensors these methods; those of packs that Paddle has too get Paddle's parameters.

    Args:
        lookup: Finds a function of Paddle's namespace; None: there is none of that name.
    """
    prefer(functools.partial(find, lookup))
    for name, value in _OWN.items():
        setattr(Tensor, name, value)
    setattr(Variable, "__getattr__", functools.partialmethod(_of_variable, lookup))  # noqa: B010 - mypy knows no other


def _of_variable(self: Any, lookup: Callable[[str, str], Any], name: str) -> Any:
    """A method or a property that Paddle's variables of programs have: the function of that name."""
    if name in _OF_VARIABLES:
        return _OF_VARIABLES[name](self)
    if not name.startswith("_") and f"Tensor.{name}" in signatures() and name not in _NO_METHODS:
        for space in _SPACES:
            if callable(found := lookup(space, name)):
                return functools.partial(found, self)
    raise AttributeError(f"a Variable of a program has no attribute {name!r}")


_OF_VARIABLES: dict[str, Callable[[Any], Any]] = {
    "T": lambda x: F.transpose(x, axis=list(range(len(x.shape)))[::-1]),
    "size": lambda x: F.size(x),
}


def find(lookup: Callable[[str, str], Any], name: str) -> Callable[..., Any] | None:
    """The method of a name.

    Args:
        lookup: Finds a function of Paddle's namespace.
        name: The name.

    Returns:
        The function whose first argument is the tensor; None: Paddle's tensors have no such method.
    """
    full = f"Tensor.{name}"
    if full not in signatures() or name in _NO_METHODS:
        return None
    own = written(name)
    base = name.rstrip("_")
    listed = [s for s in _SPACES if f"{s}.{base}".lstrip(".") in signatures()]
    for space in [*listed, *_SPACES]:
        found = lookup(space, name)
        if callable(found):
            if not str(found.__module__).startswith(_WRITTEN) and _is_alike(own, signatures()[full]):
                return None
            return found if own is None else _both(found, own, signatures()[full])
    return None


def _both(theirs: Callable[..., Any], own: Callable[..., Any], text: str) -> Callable[..., Any]:
    """A method that is Paddle's where a call fits Paddle's parameters, else oprack's: `x.reshape(2, 3)`, `x.T`."""
    wanted = [(n, d) for n, d in parameters(text)[1:] if n != "name"]
    most, least = len(wanted), sum(d is None for _, d in wanted)
    names = {"name", *(n for n, _ in wanted)}

    @functools.wraps(theirs)
    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        fits = least <= len(args) + len(kwargs) and len(args) <= most and kwargs.keys() <= names
        return (theirs if fits else own)(x, *args, **kwargs)

    return method


def _is_alike(own: Callable[..., Any] | None, text: str) -> bool:
    """Whether a method that a pack writes takes what Paddle's does, and other libraries' ways to call it besides."""
    if own is None or not text:
        return False
    taken = list(inspect.signature(own).parameters.values())
    return agrees([p for p in parameters(text) if p[0] != "name"], taken)


def _item(self: Tensor, *args: int) -> Any:
    """One element as a Python number: the only one, or the one at a place."""
    host = np.asarray(self)
    if not args and host.size != 1:
        raise ValueError(f"item: {self.describe()} has {host.size} elements; expected one, or its place")
    return host.item(*args)


def _astype(self: Tensor, dtype: Any) -> Tensor:
    """The elements in another dtype."""
    return oprack.astype(self, dtype_name(dtype))


def _gradient(self: Tensor) -> Any:
    """The gradient as an array; None where there is none."""
    return None if self.grad is None else self.grad.numpy()


def _clear_gradient(self: Tensor, set_to_zero: bool = True) -> None:
    """The gradient as zeros, or gone."""
    if self.grad is not None:
        self.grad = oprack.zeros_like(self.grad) if set_to_zero else None


def _retain_grads(self: Tensor) -> None:
    """Keep the gradient of a tensor that was computed."""
    if self.requires_grad and not self.is_leaf:
        self.register_hook(lambda grad: setattr(self, "grad", grad))


def _cuda(self: Tensor, device_id: Any = None, blocking: bool = True) -> Tensor:
    """The tensor on a GPU."""
    return self.to(oprack.CUDAPlace(device_id or 0))


def _same(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor itself."""
    return self


def _backward(self: Tensor, grad_tensor: Any = None, retain_graph: bool = False) -> None:
    """Add the gradients of this tensor to those of the leaves that it was computed from."""
    from oprack.eager_tensor.from_above import FROM_ABOVE

    if grad_tensor is None and self.size != 1:
        grad_tensor = oprack.ones_like(self)
    FROM_ABOVE["backward"]([self], [grad_tensor], retain_graph, False)


def _dim(self: Tensor) -> int:
    """The number of dims."""
    return self.ndim


def _element_size(self: Tensor) -> int:
    """The bytes of one element."""
    return np.dtype(self.dtype).itemsize if self.dtype != "bfloat16" else 2


def _yes(self: Tensor) -> bool:
    """True of every tensor."""
    return True


def _no(self: Tensor) -> bool:
    """False of every tensor here."""
    return False


def _strides(self: Tensor) -> list[int]:
    """By how many elements each dim moves."""
    host = np.asarray(self)
    return [s // host.itemsize for s in host.strides]


_OWN: dict[str, Any] = {
    "item": _item,
    "astype": _astype,
    "cast": _astype,
    "gradient": _gradient,
    "clear_gradient": _clear_gradient,
    "retain_grads": _retain_grads,
    "cuda": _cuda,
    "pin_memory": _same,
    "get_tensor": _same,
    "backward": _backward,
    "dim": _dim,
    "ndimension": _dim,
    "element_size": _element_size,
    "is_dense": _yes,
    "is_contiguous": _yes,
    "is_selected_rows": _no,
    "is_dist": _no,
    "get_strides": _strides,
    "persistable": False,
    "offset": 0,
}
