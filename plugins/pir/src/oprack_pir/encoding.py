"""Types and attributes as PIR writes them in JSON. What is not as it should be raises CorruptModelError."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from oprack.errors import CorruptModelError
from oprack.types import VarType

DTYPES = {
    "bool": VarType.BOOL,
    "int8": VarType.INT8,
    "uint8": VarType.UINT8,
    "int16": VarType.INT16,
    "int32": VarType.INT32,
    "int64": VarType.INT64,
    "float16": VarType.FP16,
    "bfloat16": VarType.BF16,
    "float32": VarType.FP32,
    "float64": VarType.FP64,
    "complex64": VarType.COMPLEX64,
    "complex128": VarType.COMPLEX128,
}
_TYPE_DTYPES = {
    "t_bool": "bool",
    "t_i8": "int8",
    "t_ui8": "uint8",
    "t_i16": "int16",
    "t_i32": "int32",
    "t_i64": "int64",
    "t_f16": "float16",
    "t_bf16": "bfloat16",
    "t_f32": "float32",
    "t_f64": "float64",
    "t_c64": "complex64",
    "t_c128": "complex128",
}
_KINDS = {
    "t_dtensor": VarType.LOD_TENSOR,
    "t_dense_tensor": VarType.LOD_TENSOR,
    "t_dense_tensor_array": VarType.LOD_TENSOR_ARRAY,
}


@dataclass(frozen=True, slots=True)
class TensorType:
    """Type of a value that is a tensor or an array of tensors; -1 is a dim that is open."""

    kind: VarType
    dtype: VarType
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListType:
    """Type of a value that is a list of tensors; an entry is None for an absent one."""

    items: tuple[TensorType | None, ...]


Type = TensorType | ListType | None


def read_value(given: Any, key: str, where: str) -> tuple[int, Type]:
    """The id of a value, which lies below `key`, and its type."""
    return get(given, key, int, where), read_type(given.get("TT", "NULL"), where)


def read_type(given: Any, where: str) -> Type:
    """The type of a value; None for a value that is absent."""
    if given == "NULL" or given is None or (isinstance(given, dict) and given.get("#") == "NULL"):
        return None
    kind = _short(get(given, "#", str, f"the type of {where}"))
    if kind == "t_vec":
        items = [read_type(item, where) for item in get_list(given, "D", f"the list type of {where}")]
        if any(isinstance(item, ListType) for item in items):
            raise CorruptModelError(f"{where} is a list of lists; expected a list of tensors")
        return ListType(tuple(item for item in items if not isinstance(item, ListType)))
    parts = get_list(given, "D", f"the type of {where}")
    if kind not in _KINDS or len(parts) < 2:
        raise CorruptModelError(
            f"{where} has the type {kind!r} with {len(parts)} parts; expected {', '.join(_KINDS)} or t_vec"
        )
    dtype = _short(get(parts[0], "#", str, f"the dtype of {where}"))
    if dtype not in _TYPE_DTYPES:
        raise CorruptModelError(f"{where} has the dtype {dtype!r}; expected one of {', '.join(_TYPE_DTYPES)}")
    return TensorType(_KINDS[kind], DTYPES[_TYPE_DTYPES[dtype]], _shape(parts[1], where))


def _shape(given: Any, where: str) -> tuple[int, ...]:
    if not isinstance(given, list) or not all(type(dim) is int and -1 <= dim < 2**63 for dim in given):
        raise CorruptModelError(f"{where} has the shape {given!r:.200}; expected a list of dims, -1 for an open one")
    return tuple(given)


_FLOATS = frozenset({"a_f32", "a_f64"})
_TYPES = {"a_bool": bool, "a_i32": int, "a_i64": int, "a_str": str, "a_index": int}


def read_attribute(given: Any, where: str, depth: int = 0) -> Any:
    """An attribute's value; floats without a finite value are text below VD."""
    kind = _short(get(given, "#", str, f"an attribute of {where}"))
    value = given.get("D", given.get("VD"))  # get has found a dict
    if kind in _FLOATS:
        return _float(value, where)
    if kind in _TYPES and type(value) is _TYPES[kind]:
        if type(value) is not int or -(2**63) <= value < 2**63:
            return value
    elif kind == "a_array" and isinstance(value, list) and depth < 8:
        return [read_attribute(item, where, depth + 1) for item in value]
    elif kind == "a_intarray" and isinstance(value, list) and all(type(v) is int and abs(v) < 2**63 for v in value):
        return value
    elif kind == "a_dtype" and isinstance(value, str) and value in DTYPES:
        return DTYPES[value]
    elif kind == "a_scalar":
        return _scalar(value, where)
    elif kind == "a_dtype" and isinstance(value, str) and value.lower().startswith("undefined"):
        return None  # the op takes that of its input
    elif kind in ("a_place", "a_layout", "a_pointer", "a_tensorname", "a_type"):
        return None  # nothing in a result depends on them
    _bad(kind, value, where)


def _scalar(value: Any, where: str) -> bool | int | float:
    """[dtype, value], or the value alone."""
    value = value[-1] if isinstance(value, list) and value else value
    if isinstance(value, bool) or (type(value) is int and abs(value) < 2**63):
        return value
    return _float(value, where)


def _float(value: Any, where: str) -> float:
    try:
        if not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    _bad("a float", value, where)


def _bad(kind: str, value: Any, where: str) -> NoReturn:
    raise CorruptModelError(f"{where}: an attribute of type {kind!r} is {value!r:.200}, which is no value of that type")


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def get(given: Any, key: str, kind: type, where: str) -> Any:
    """A member of a JSON object, of exactly this type."""
    value = given.get(key) if isinstance(given, dict) else None
    if type(value) is not kind:
        raise CorruptModelError(f"{where} has {key!r}: {value!r:.80}; expected {kind.__name__}")
    return value


def get_list(given: Any, key: str, where: str) -> list[Any]:
    """A member of a JSON object that is a list."""
    found: list[Any] = get(given, key, list, where)
    return found
