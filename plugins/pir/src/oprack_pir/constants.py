"""Numbers: constants as ops, and values as the attributes of an op hold them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from oprack.desc import OpDesc
from oprack.errors import CorruptModelError, UnimplementedError
from oprack.types import AttrType, VarType

from oprack_pir.document import Operation
from oprack_pir.values import Constant

_MAX_SPREAD = 64
"""Elements of a tensor of one number that count as a list of numbers: sizes and axes are as many as there are dims."""
_ONE = {
    AttrType.INTS: int,
    AttrType.LONGS: int,
    AttrType.FLOATS: float,
    AttrType.FLOAT64S: float,
    AttrType.BOOLEANS: bool,
}
_SINGLE = {
    AttrType.INT: int,
    AttrType.LONG: int,
    AttrType.FLOAT: float,
    AttrType.FLOAT64: float,
    AttrType.BOOLEAN: bool,
}
_LISTS = {*_ONE, AttrType.STRINGS, AttrType.SCALARS}
_VALUES = {
    VarType.BOOL: ("bool_values", int),
    VarType.INT32: ("int32_values", int),
    VarType.INT64: ("int64_values", int),
    VarType.FP32: ("fp32_values", float),
    VarType.FP64: ("fp64_values", float),
}


def fitted(value: Any, kind: AttrType) -> Any:
    """A value as an attribute of this type has it: PIR keeps some numbers as lists, and some ints as floats."""
    if kind in _LISTS:
        items = value if isinstance(value, list) else [value]
        convert = _ONE.get(kind)
        if kind is AttrType.INTS:
            # an end beyond all dims is written in 64 bits
            return [max(-(2**31), min(2**31 - 1, _number(item, int))) for item in items]
        return [_number(item, convert) for item in items] if convert else items
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if kind is AttrType.STRING and isinstance(value, float):
        return repr(value)  # tolerances are text in Fluid
    return _number(value, _SINGLE[kind]) if kind in _SINGLE else value


def _number(value: Any, kind: type) -> Any:
    if not isinstance(value, bool | int | float) or (kind is int and not math.isfinite(value)):
        return value  # set_attr says what was expected
    return kind(value)


def of_full(op: Operation) -> Constant | None:
    """What `full` gives, where that is a number or a short list of one number."""
    shape, value, dtype = (op.attrs.get(name) for name in ("shape", "value", "dtype"))
    if not isinstance(shape, list) or isinstance(value, list | str | None) or dtype is None:
        raise CorruptModelError(
            f"op {op} has shape {shape!r:.80}, value {value!r:.80} and dtype {dtype!r}; expected all"
        )
    if any(dim < 0 for dim in shape):
        raise CorruptModelError(f"op {op} has the shape {shape!r:.200}; expected dims that are known")
    if not shape or shape == [1]:
        return Constant((value,), True, dtype)
    return Constant((value,) * shape[0], False, dtype) if len(shape) == 1 and shape[0] <= _MAX_SPREAD else None


def of_list(op: Operation) -> Constant:
    """What `full_int_array` gives."""
    value, dtype = op.attrs.get("value"), op.attrs.get("dtype")
    if not isinstance(value, list) or not all(type(item) is int for item in value) or dtype is None:
        raise CorruptModelError(f"op {op} has value {value!r:.200} and dtype {dtype!r}; expected ints, and a dtype")
    return Constant(tuple(value), False, dtype)


def constant_op(constant: Constant, shape: Sequence[int], name: str) -> OpDesc:
    """The op that makes the tensor of a constant."""
    numbers = constant.numbers
    if len(set(numbers)) <= 1:
        return full_op(shape, numbers[0] if numbers else 0, constant.dtype, name)
    return list_op(numbers, shape, constant.dtype, name)


def full_op(shape: Sequence[int], value: bool | int | float, dtype: VarType, name: str) -> OpDesc:
    """A tensor of one number. The text of the number is exact where a float of 32 bits is not."""
    if dtype not in (VarType.FP16, VarType.BF16, VarType.FP32, VarType.FP64) and math.isfinite(value):
        value = int(value)
    attrs = {"shape": list(shape), "dtype": int(dtype), "value": _float32(value), "str_value": _text(value)}
    kinds = {"shape": AttrType.LONGS, "dtype": AttrType.INT, "value": AttrType.FLOAT, "str_value": AttrType.STRING}
    return OpDesc("fill_constant", {}, {"Out": name}, attrs, kinds)


def list_op(numbers: Sequence[bool | int | float], shape: Sequence[int], dtype: VarType, name: str) -> OpDesc:
    """A tensor of given numbers. Raises UnimplementedError for a dtype that Fluid's op does not take."""
    if dtype not in _VALUES:
        raise UnimplementedError(
            f"variable {name!r}: numbers of dtype {dtype.name}; Fluid's assign_value takes "
            + ", ".join(kind.name for kind in _VALUES)
        )
    attr, convert = _VALUES[dtype]
    attrs = {"shape": list(shape), "dtype": int(dtype), attr: [convert(number) for number in numbers]}
    kinds = {
        "shape": AttrType.INTS,
        "dtype": AttrType.INT,
        "bool_values": AttrType.INTS,
        "int32_values": AttrType.INTS,
        "int64_values": AttrType.LONGS,
        "fp32_values": AttrType.FLOATS,
        "fp64_values": AttrType.FLOAT64S,
    }
    return OpDesc("assign_value", {}, {"Out": name}, attrs, {key: kinds[key] for key in attrs})


def _text(value: float) -> str:
    return str(int(value)) if isinstance(value, bool) else repr(value)


def _float32(value: float) -> float:
    return float(value) if math.isfinite(value) and abs(value) < 3.4e38 else 0.0
