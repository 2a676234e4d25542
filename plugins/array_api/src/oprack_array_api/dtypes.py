"""Dtypes of the standard, which oprack names by strings, their promotion and what can be asked of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from oprack import Tensor, default_manager
from oprack.errors import InvalidArgumentError, OprackError
from oprack.tensor import CPUPlace, CUDAPlace, Place, numpy_dtype
from oprack.types import COMPLEX, FLOATS, complex_dtype, dtype_name, real_dtype

Bool = bool


class DType:
    """A dtype object of the standard. It equals the name by which tensors tell their dtype, such as "float32"."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> Bool:
        return self is other or (isinstance(other, str) and other == self.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"oprack.array_api.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _dtype, (self.name,)


def _dtype(name: str) -> DType:
    """The one object of a dtype; the standard lacks float16 and bfloat16, which tensors may have."""
    return DTYPES.get(name) or DType(name)


SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
INTEGERS, REAL, COMPLEXES = SIGNED + UNSIGNED, ("float32", "float64"), ("complex64", "complex128")
KINDS = {
    "bool": ("bool",),
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGERS,
    "real floating": REAL,
    "complex floating": COMPLEXES,
    "numeric": INTEGERS + REAL + COMPLEXES,
}
DTYPES = {name: DType(name) for name in ("bool", *KINDS["numeric"])}
"""The dtype objects by name."""
DEFAULTS = {"real floating": "float32", "complex floating": "complex64", "integral": "int64", "indexing": "int64"}
"""Names of the dtypes of what is created without one."""
globals().update(DTYPES)
e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi


def category(dtype: str | None) -> str:
    """ "bool", "integral", "real floating" or "complex floating"; also of dtypes that the standard does not have."""
    if dtype in COMPLEX:
        return "complex floating"
    if dtype in FLOATS or dtype in ("float16", "bfloat16"):
        return "real floating"
    return "bool" if dtype == "bool" else "integral"


@cache
def promoted(x: str, y: str) -> str:
    """The dtype of two, by the standard's table. Raises TypeError where it has none."""
    if x == y:
        return x
    kinds = {category(x), category(y)}
    if len(kinds) == 1 or kinds == {"real floating", "complex floating"}:
        found = str(np.promote_types(numpy_dtype(x), numpy_dtype(y)))
        if category(found) in kinds:
            return found
    raise TypeError(f"{x} and {y} have no common dtype in the array API standard; cast one: x.astype({y!r})")


def scalar_dtype(value: Any, dtype: str) -> str:
    """The dtype of a Python scalar beside a tensor of `dtype`: that of the tensor, or a complex one of its precision.

    Raises TypeError for a scalar of a kind that the dtype can't hold.
    """
    kind = category(dtype)
    if isinstance(value, Bool):
        fits = kind == "bool"
    elif isinstance(value, int):
        fits = kind != "bool"
    elif isinstance(value, float):
        fits = kind in ("real floating", "complex floating")
    else:
        if kind == "real floating":
            return complex_dtype(dtype)
        fits = kind == "complex floating"
    if not fits:
        raise TypeError(
            f"{value!r} beside {dtype}: a Python {type(value).__name__} has no such dtype; cast the tensor first"
        )
    return dtype


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of a calculation with these tensors, dtypes and Python scalars, by the standard's rules of promotion.

    Args:
        arrays_and_dtypes: Tensors, dtypes or scalars; at least one that is no scalar.

    Returns:
        The dtype.

    Raises:
        TypeError: Nothing has a dtype, or two of them have none in common.
    """
    scalars = [a for a in arrays_and_dtypes if isinstance(a, int | float | complex)]
    others = [a for a in arrays_and_dtypes if not isinstance(a, int | float | complex)]
    dtypes = [dtype_of(a) for a in others]
    if not dtypes:
        raise TypeError("result_type needs a tensor or a dtype among its arguments")
    found = dtypes[0]
    for dtype in dtypes[1:]:
        found = promoted(found, dtype)
    for scalar in scalars:
        found = scalar_dtype(scalar, found)
    return _dtype(found)


def dtype_of(x: Any) -> str:
    """The dtype of a tensor, or the dtype that is given."""
    return str(x.dtype) if hasattr(x, "_apply") else dtype_name(x)


def can_cast(from_: Any, to: Any, /) -> Bool:
    """Tells whether the standard's promotion leads from one dtype to another.

    Args:
        from_: A dtype, or a tensor, whose dtype counts.
        to: The other dtype.

    Returns:
        Whether it does.
    """
    source, target = dtype_of(from_), dtype_name(to)
    try:
        return promoted(source, target) == target
    except TypeError:
        return False


def isdtype(dtype: Any, kind: Any) -> Bool:
    """Whether a dtype is of a kind ("bool", "integral", "real floating" ...), is this dtype, or any of a tuple of such.

    Args:
        dtype: The dtype.
        kind: The kind, a dtype, or a tuple of them.

    Returns:
        Whether it is.

    Raises:
        InvalidArgumentError: There is no such kind.
    """
    name = dtype_of(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(name, k) for k in kind)
    if isinstance(kind, str) and kind in KINDS:
        return name in KINDS[kind]
    try:
        return name == dtype_name(kind)
    except InvalidArgumentError:
        raise InvalidArgumentError(
            f"isdtype: kind is {kind!r}; expected one of {', '.join(KINDS)}, a dtype, or a tuple of them"
        ) from None


def astype(x: Any, dtype: Any, /, *, copy: Bool = True, device: Any = None) -> Tensor:
    """The values as another dtype.

    Args:
        x: A tensor.
        dtype: The dtype.
        copy: Whether to copy a tensor that has the dtype already.
        device: A place to move to.

    Returns:
        The tensor; x itself for copy=False when nothing changes.

    Raises:
        TypeError: A complex tensor would lose its imaginary parts.
    """
    name = dtype_name(dtype)
    if category(x.dtype) == "complex floating" and category(name) in ("real floating", "integral"):
        raise TypeError(f"astype: {x.describe()} to {name} would drop imaginary parts; write xp.real(x)")
    found = x.astype(name) if name != x.dtype else x.clone() if copy else x
    return found if device is None else found.to(device)


@dataclass(frozen=True)
class FloatInfo:
    """What finfo returns: limits of a floating dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntInfo:
    """What iinfo returns: limits of an integer dtype, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FloatInfo:
    """Limits of a floating dtype, or of that of a tensor; of a complex dtype, those of its parts."""
    name = real_dtype(dtype_of(type))
    info = np.finfo(numpy_dtype(name))
    eps, most, least, normal = (float(v) for v in (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(int(info.bits), eps, most, least, normal, _dtype(name))


def iinfo(type: Any, /) -> IntInfo:
    """Limits of an integer dtype, or of that of a tensor."""
    name = dtype_of(type)
    info = np.iinfo(numpy_dtype(name))
    return IntInfo(int(info.bits), int(info.max), int(info.min), _dtype(name))


class Info:
    """What `__array_namespace_info__()` returns."""

    def capabilities(self) -> dict[str, Any]:
        """What the standard leaves open."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Place:
        """Where tensors are created."""
        return CPUPlace()

    def devices(self) -> list[Place]:
        """The places that installed plugins serve."""
        return places()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The dtypes of tensors that are created without one."""
        return {kind: DTYPES[name] for kind, name in DEFAULTS.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The dtypes of a kind, or of a tuple of kinds, by name."""
        return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}


def places() -> list[Place]:
    """The CPU, and the GPUs that a plugin serves and the machine has."""
    found: list[Place] = [CPUPlace()]
    contexts = default_manager().device_contexts
    while True:
        place = CUDAPlace(len(found) - 1)
        try:
            contexts.get(place)
        except OprackError:
            return found
        found.append(place)


def array_namespace_info() -> Info:
    """What this namespace has and does by default, as the standard's `__array_namespace_info__`."""
    return Info()
