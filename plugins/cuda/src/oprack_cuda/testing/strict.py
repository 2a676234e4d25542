"""StrictArray: an array that behaves as CuPy's where NumPy's is more lenient, over memory of the host.

It shows without a GPU that a kernel uses nothing but `xp`: it never turns into a numpy.ndarray by itself, takes none as
an operand, and has only the methods and parameters that CuPy has. What waits for the device, and what copies from the
host, is counted: `LOG`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack.python.containers import with_members

from oprack_cuda.testing import surface
from oprack_cuda.testing.log import LOG, Log

__all__ = ["LOG", "Log", "StrictArray", "check_host_arguments", "unwrap", "wrap"]


@dataclass(frozen=True)
class Pointer:
    """Where an array begins."""

    ptr: int


@dataclass(frozen=True)
class Device:
    """Where an array lies."""

    id: int


class Flags:
    """The flags that CuPy's arrays have."""

    def __init__(self, array: np.ndarray) -> None:
        self.c_contiguous, self.f_contiguous = array.flags.c_contiguous, array.flags.f_contiguous
        self.owndata = array.flags.owndata


def wrap(value: Any) -> Any:
    """What NumPy returned, as CuPy would return it: arrays, also of rank 0, never scalars."""
    if isinstance(value, np.ndarray | np.generic):
        return StrictArray(np.asarray(value))
    if isinstance(value, tuple | list):
        return with_members(value, map(wrap, value))
    return value


def unwrap(value: Any, what: str) -> Any:
    """Operands for NumPy. Raises TypeError for a numpy.ndarray, which CuPy takes nowhere but in asarray and array."""
    if isinstance(value, StrictArray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"{what}: got a numpy.ndarray{list(value.shape)}; copy it to the device with xp.asarray first")
    if isinstance(value, tuple | list):
        return with_members(value, [unwrap(v, what) for v in value])
    if isinstance(value, slice):
        for bound in (value.start, value.stop, value.step):
            if isinstance(bound, StrictArray):
                raise TypeError(f"{what}: a bound of a slice is an array of the device, which has no __index__")
    return value


class StrictArray:
    """An array of the pretended device."""

    __slots__ = ("_host",)
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100

    def __init__(self, host: np.ndarray) -> None:
        self._host = host

    # What CuPy refuses ------------------------------------------------------------------------------------------------
    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError("implicit conversion to a NumPy array is not allowed; kernels use xp, not numpy")

    def __array_function__(self, function: Any, *args: Any) -> None:
        raise TypeError(f"numpy.{function.__name__} was called on an array of the device; write xp.{function.__name__}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Only for a NumPy scalar on the left of an operator."""
        if method != "__call__" or kwargs or not isinstance(inputs[0], np.generic):
            raise TypeError(f"numpy.{ufunc.__name__} was called on an array of the device; write xp.{ufunc.__name__}")
        return _ufunc(ufunc.__name__)(*inputs)

    def __getattr__(self, name: str) -> Any:
        found = surface.load()
        if name in found["properties"]:
            return wrap(getattr(self._host, name))
        if name in found["methods"]:
            return _Method(self._host, name, found["methods"][name])
        raise AttributeError(f"cupy.ndarray of CuPy {found['cupy']} has no {name!r}")

    # What makes the host wait -----------------------------------------------------------------------------------------
    def __bool__(self) -> bool:
        LOG.wait("bool(array)")
        return bool(self._host)

    def __int__(self) -> int:
        LOG.wait("int(array)")
        return int(self._host)

    def __float__(self) -> float:
        LOG.wait("float(array)")
        return float(self._host)

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> np.ndarray:
        LOG.wait("array.get()")
        if out is None:
            return self._host.copy()
        out[...] = self._host
        return out

    def set(self, arr: np.ndarray, stream: Any = None) -> None:
        LOG.copy("array.set(host memory)")
        self._host[...] = arr

    def item(self) -> Any:
        LOG.wait("array.item()")
        return self._host.item()

    def tolist(self) -> Any:
        LOG.wait("array.tolist()")
        return self._host.tolist()

    # What needs care --------------------------------------------------------------------------------------------------
    @property
    def dtype(self) -> np.dtype:
        return self._host.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._host.shape

    @property
    def ndim(self) -> int:
        return self._host.ndim

    @property
    def real(self) -> StrictArray:
        return StrictArray(self._host.real)

    @real.setter
    def real(self, value: Any) -> None:
        self._host.real = unwrap(value, "array.real = value")

    @property
    def imag(self) -> StrictArray:
        return StrictArray(self._host.imag)

    @imag.setter
    def imag(self, value: Any) -> None:
        self._host.imag = unwrap(value, "array.imag = value")

    @property
    def flags(self) -> Flags:
        return Flags(self._host)

    @property
    def data(self) -> Pointer:
        return Pointer(self._host.ctypes.data)

    @property
    def device(self) -> Device:
        return Device(0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return dict(self._host.__array_interface__)

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        return (wrap(v) for v in self._host)

    def __repr__(self) -> str:
        return f"StrictArray({self._host!r})"

    def __getitem__(self, index: Any) -> StrictArray:
        host = unwrap(index, "array[...]")
        _note_index(index, host, reads=True)
        return StrictArray(np.asarray(self._host[host]))

    def __setitem__(self, index: Any, value: Any) -> None:
        host, new = unwrap(index, "array[...] = value"), unwrap(value, "array[...] = value")
        _note_index(index, host, reads=False)
        if isinstance(new, list | tuple):
            LOG.copy("array[...] = list")
        self._host[host] = new
        if isinstance(new, np.ndarray) and new.size > 1 and _has_arrays(host):
            stored, wanted = np.broadcast_arrays(self._host[host], new.astype(self._host.dtype))
            if not np.array_equal(stored, wanted, equal_nan=stored.dtype.kind in "fc"):
                raise ValueError(
                    "array[index] = array: the index names an element twice, with different values, and on a device it "
                    "is undefined which one stays; make the index unique, or use xp.add.at or xp.maximum.at"
                )


def _note_index(index: Any, host: Any, *, reads: bool) -> None:
    for given, part in zip(*((i if isinstance(i, tuple) else (i,)) for i in (index, host)), strict=True):
        if isinstance(part, list):
            LOG.copy("index that is a list")
        if reads and isinstance(given, StrictArray) and part.dtype == bool:
            LOG.wait("array[mask]")


def _has_arrays(index: Any) -> bool:
    """Whether an index may name an element twice."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(p, np.ndarray) and p.dtype != bool and p.size > 1 for p in parts)


class _Method:
    """A method of an array, with CuPy's parameters."""

    def __init__(self, host: np.ndarray, name: str, signature: str) -> None:
        self._host, self._name, self._signature = host, name, signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        what = f"array.{self._name}"
        surface.parse_signature(self._signature).bind(*args, **kwargs)
        if self._name == "nonzero":
            LOG.wait(what)
        check_host_arguments(what, args)
        out = kwargs.get("out")
        args, kwargs = unwrap(args, what), {k: unwrap(v, what) for k, v in kwargs.items() if k != "blocking"}
        if self._name == "astype" and kwargs.get("casting", ...) is None:
            del kwargs["casting"]
        result = getattr(self._host, self._name)(*args, **kwargs)
        return out if out is not None else wrap(result)


# Positions of arguments that are no arrays: function -> (first, how many)
_OF_HOST = {"zeros": (0, 1), "ones": (0, 1), "empty": (0, 1), "full": (0, 1), "arange": (0, 3), "eye": (0, 2)}
_OF_HOST |= {n: (1, 1) for n in ("reshape", "repeat", "tile", "broadcast_to", "split", "array_split", "roll")}
_OF_HOST |= {"moveaxis": (1, 2), "array.reshape": (0, 32), "array.repeat": (0, 1), "array.transpose": (0, 32)}


def check_host_arguments(name: str, args: tuple[Any, ...]) -> None:
    """Raise TypeError for an array of the device where CuPy wants numbers of the host: shapes, axes, counts."""
    first, count = _OF_HOST.get(name, (0, 0))
    for value in args[first : first + count]:
        parts = value if isinstance(value, tuple | list) else (value,)
        if any(isinstance(v, StrictArray) for v in parts):
            raise TypeError(
                f"{name}: a shape, an axis or a count is an array of the device; expected numbers of the host"
            )


def _ufunc(name: str) -> Any:
    from oprack_cuda.testing.namespace import xp

    return getattr(xp, name)


def _operator(name: str, ufunc: str, reverse: bool = False) -> Any:
    def method(self: StrictArray, *others: Any) -> Any:
        operands = (*others, self) if reverse else (self, *others)
        return _ufunc(ufunc)(*operands)

    method.__name__ = name
    return method


def _in_place(name: str, ufunc: str) -> Any:
    def method(self: StrictArray, other: Any) -> Any:
        _ufunc(ufunc)(self, other, out=self)
        return self

    method.__name__ = name
    return method


_BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide"}
_BINARY |= {"mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
_BINARY |= {"lshift": "left_shift", "rshift": "right_shift"}
for _name, _function in _BINARY.items():
    setattr(StrictArray, f"__{_name}__", _operator(f"__{_name}__", _function))
    setattr(StrictArray, f"__r{_name}__", _operator(f"__r{_name}__", _function, reverse=True))
    setattr(StrictArray, f"__i{_name}__", _in_place(f"__i{_name}__", _function))
_COMPARE = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal"}
for _name, _function in (_COMPARE | {"neg": "negative", "abs": "absolute", "invert": "invert"}).items():
    setattr(StrictArray, f"__{_name}__", _operator(f"__{_name}__", _function))
for _name, _reverse in (("__matmul__", False), ("__rmatmul__", True)):
    setattr(StrictArray, _name, _operator(_name, "matmul", reverse=_reverse))
