"""xp: a module of strict functions, those that CuPy has and with CuPy's parameters; see strict.py."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from oprack_cuda.testing import surface
from oprack_cuda.testing.strict import LOG, StrictArray, check_host_arguments, unwrap, wrap

_WAITING = {"nonzero", "argwhere", "flatnonzero", "unique", "bincount", "array_equal", "allclose", "extract", "isin"}
_WAITING |= {"compress", "histogram", "trim_zeros", "in1d", "setdiff1d", "intersect1d", "union1d", "delete", "asnumpy"}
_FROM_HOST = {"asarray", "array", "ascontiguousarray", "asanyarray"}
_NO_SCALARS = {"lexsort"}  # CuPy wants one array where NumPy takes a tuple, too


class Ufunc:
    """A universal function: the loops are CuPy's, and so are the methods that work."""

    def __init__(self, name: str, facts: dict[str, Any]) -> None:
        self.__name__, self._at = name, facts["at"]
        self._loops = [tuple(side for side in t.split("->")) for t in facts["types"].split()]
        self._function = getattr(np, name)

    def __call__(self, *args: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind") -> Any:
        what = f"xp.{self.__name__}"
        hosts = unwrap(args, what)
        if not any(isinstance(a, StrictArray) for a in args):
            raise TypeError(f"{what}: no operand is an array of the device")
        if any(isinstance(a, list | tuple) for a in args):
            raise TypeError(f"{what}: an operand is a list; copy it to the device with xp.asarray first")
        options: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
        result = self._function(*hosts, casting=casting, **options)
        if isinstance(self._function, np.ufunc) and dtype is None:
            kinds = tuple(_kind(h) for h in hosts)
            first = result[0] if isinstance(result, tuple) else result
            self._check_loop(kinds, first.dtype)
        if out is None:
            return wrap(result)
        target = out[0] if isinstance(out, tuple) else out
        if not isinstance(target, StrictArray):
            raise TypeError(f"{what}: out is a {type(target).__name__}; expected an array of the device")
        self._function(*hosts, out=target._host, casting=casting, **options)
        return target

    @functools.cache  # noqa: B019 (one object per function lives as long as the process)
    def _check_loop(self, kinds: tuple[Any, ...], result: np.dtype) -> None:
        """Raise TypeError when CuPy has no loop for these dtypes or another result."""
        wanted = (*kinds, *(None,) * self._function.nout)
        resolved = self._function.resolve_dtypes(wanted)[: len(kinds)]
        for inputs, outputs in self._loops:
            loop = [_dtype(c) for c in inputs]
            if all(np.can_cast(a, b) for a, b in zip(resolved, loop, strict=True)):
                if _dtype(outputs[0]) == result:
                    return
                break
        names = ", ".join(str(k) for k in kinds)
        raise TypeError(f"xp.{self.__name__}: CuPy has no loop for ({names}) that gives {result}, as NumPy has")

    def at(self, array: StrictArray, index: Any, *values: Any) -> None:
        """Unbuffered, as numpy.ufunc.at."""
        if not self._at:
            raise NotImplementedError(f"cupy.{self.__name__}.at does not exist")
        what = f"xp.{self.__name__}.at"
        if array.dtype.char not in "iIlLqQefdFDE":
            raise TypeError(f"{what}: a device has no atomic operation for {array.dtype}")
        if array.dtype.kind in "fc" and self.__name__ not in ("maximum", "minimum"):
            LOG.atomic(what)
        self._function.at(unwrap(array, what), unwrap(index, what), *unwrap(values, what))

    def reduce(
        self, array: StrictArray, axis: int = 0, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        self._only("reduce", "add", "multiply")
        return wrap(self._function.reduce(unwrap(array, "reduce"), axis, dtype, keepdims=keepdims))

    def accumulate(self, array: StrictArray, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        self._only("accumulate", "add", "multiply")
        return wrap(self._function.accumulate(unwrap(array, "accumulate"), axis, dtype))

    def reduceat(self, array: StrictArray, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        self._only("reduceat", "add")
        return wrap(self._function.reduceat(unwrap(array, "reduceat"), unwrap(indices, "reduceat"), axis, dtype))

    def outer(self, a: Any, b: Any) -> Any:
        return wrap(self._function.outer(unwrap(a, "outer"), unwrap(b, "outer")))

    def _only(self, method: str, *names: str) -> None:
        if self.__name__ not in names:
            raise NotImplementedError(f"cupy.{self.__name__}.{method} does not exist")


def _kind(value: Any) -> Any:
    """What numpy.ufunc.resolve_dtypes wants of an operand: Python's numbers are weak, its bool is not."""
    if hasattr(value, "dtype"):
        return value.dtype
    return np.dtype(bool) if isinstance(value, bool) else next(t for t in (int, float, complex) if isinstance(value, t))


@functools.cache
def _dtype(char: str) -> np.dtype:
    if char == "E":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(char)


class Function:
    """A function that is no ufunc."""

    def __init__(self, name: str, signature: str) -> None:
        self.__name__, self._signature = name, signature
        self._function: Callable[..., Any] = operator.attrgetter(name)(np)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        what, name = f"xp.{self.__name__}", self.__name__
        surface.parse_signature(self._signature).bind(*args, **kwargs)
        kwargs.pop("blocking", None)
        if name in _FROM_HOST:
            return self._from_host(*args, **kwargs)
        if name in _WAITING or (name == "where" and len(args) == 1):
            LOG.wait(what)
        if kwargs.get("kind") not in (None, "stable"):
            raise ValueError(f"{what}: kind is {kwargs['kind']!r}; CuPy sorts stably and takes no other")
        if (out := kwargs.get("out")) is not None and name == "matmul" and not out.flags.c_contiguous:
            raise ValueError(f"{what}: out is not contiguous, which CuPy's products want")
        if name in _NO_SCALARS and not isinstance(args[0], StrictArray):
            raise TypeError(f"{what}: expected one array of the device")
        check_host_arguments(name, args)
        out = kwargs.pop("out", None)
        result = self._function(*unwrap(args, what), **{k: unwrap(v, what) for k, v in kwargs.items()})
        if out is not None:
            out._host[...] = result
            return out
        return wrap(result)

    def _from_host(self, value: Any, *args: Any, **kwargs: Any) -> StrictArray:
        """What may take memory of the host; a result never lies on it."""
        if isinstance(value, StrictArray):
            return StrictArray(np.asarray(self._function(value._host, *args, **kwargs)))
        if isinstance(value, list | tuple) and any(isinstance(v, StrictArray) for v in value):
            hosts = [v._host if isinstance(v, StrictArray) else v for v in value]
            return StrictArray(np.array(hosts, *args, **kwargs))
        LOG.copy(f"xp.{self.__name__}(host memory)")
        return StrictArray(np.array(self._function(value, *args, **kwargs)))


class _Grid:
    """ogrid and mgrid."""

    def __init__(self, name: str) -> None:
        self._grid = getattr(np, name)

    def __getitem__(self, index: Any) -> Any:
        return wrap(self._grid[unwrap(index, "grid")])


class Namespace:
    """cupy, or one of its modules. A name that CuPy does not have is an AttributeError."""

    __version__ = property(lambda self: surface.load()["cupy"])

    def __init__(self, path: str = "") -> None:
        self._path = path
        self.__name__ = ".".join(filter(None, ("strict_cupy", path)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._find(f"{self._path}.{name}".lstrip("."))
        setattr(self, name, found)
        return found

    def _find(self, key: str) -> Any:
        known = surface.load()
        if key in ("ndarray", "ufunc"):
            return StrictArray if key == "ndarray" else Ufunc
        if key in known["ufuncs"]:
            return Ufunc(key, known["ufuncs"][key])
        if key in known["functions"]:
            return Function(key, known["functions"][key])
        if key in known["values"]:
            return _Grid(key) if key in ("ogrid", "mgrid") else getattr(np, key)
        if any(k.startswith(key + ".") for k in known["functions"]):
            return Namespace(key)
        raise AttributeError(f"cupy {known['cupy']} has no {key!r}")


xp = Namespace()
