"""OpDesc: an op of a program as data: its type, the names in its slots, and its attributes."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from oprack.errors import AttributeValueError
from oprack.types import AttrType


# Python's own types first: an abstract class takes ten times as long to ask, and a load asks thousands of times
def _is_int(value: Any) -> bool:
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def _is_int32(value: Any) -> bool:
    return (type(value) is int or _is_int(value)) and -(2**31) <= value < 2**31


def _is_int64(value: Any) -> bool:
    return (type(value) is int or _is_int(value)) and -(2**63) <= value < 2**63


def _is_bool(value: Any) -> bool:
    # numpy.bool_ is no numbers.Number, and this module does not import NumPy
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _is_real(value: Any) -> bool:
    return type(value) is float or (isinstance(value, numbers.Real) and not _is_bool(value))


def _scalar(value: Any) -> bool | int | float | complex:
    for test, convert in ((_is_bool, bool), (_is_int, int), (_is_real, float)):
        if test(value):
            return convert(value)
    return complex(value)


def _is_scalar(value: Any) -> bool:
    return _is_int64(value) or (not _is_int(value) and (_is_bool(value) or isinstance(value, numbers.Complex)))


def _is_str(value: Any) -> bool:
    return isinstance(value, str)


def _is_truth(value: Any) -> bool:
    return _is_bool(value) or (isinstance(value, numbers.Complex) and value in (0, 1))


def _is_block(value: Any) -> bool:
    return hasattr(value, "parent_idx") and hasattr(value, "idx")


def _is_index(value: Any) -> bool:
    return _is_int32(value) or _is_block(value)


def _index(value: Any) -> int:
    return int(value.idx if _is_block(value) else value)


class Rule(NamedTuple):
    """What values an attribute of one type has.

    Attributes:
        words: What a value must be, for messages.
        test: Whether a value, or an element of a list, is so.
        convert: The value or element as it is kept.
        many: Whether values are lists.
        plain: The Python type of which every value is kept as it is.
    """

    words: str
    test: Callable[[Any], bool]
    convert: Callable[[Any], Any]
    many: bool = False
    plain: type | None = None


# (type of one, type of a list, one in words, several in words, test, conversion, type of which all values are right)
_KINDS: tuple[tuple[AttrType, AttrType, str, str, Callable[[Any], bool], Callable[[Any], Any], type | None], ...] = (
    (AttrType.BOOLEAN, AttrType.BOOLEANS, "a bool", "bools", _is_truth, bool, bool),
    (AttrType.INT, AttrType.INTS, "an int of 32 bits", "ints of 32 bits", _is_int32, int, None),
    (AttrType.LONG, AttrType.LONGS, "an int of 64 bits", "ints of 64 bits", _is_int64, int, None),
    (AttrType.FLOAT, AttrType.FLOATS, "a float", "floats", _is_real, float, float),
    (AttrType.FLOAT64, AttrType.FLOAT64S, "a float", "floats", _is_real, float, float),
    (AttrType.STRING, AttrType.STRINGS, "a str", "str", _is_str, str, str),
    (AttrType.BLOCK, AttrType.BLOCKS, "a block or its index", "blocks or their indices", _is_index, _index, None),
    (AttrType.VAR, AttrType.VARS, "a variable's name", "names of variables", _is_str, str, str),
    (
        AttrType.SCALAR,
        AttrType.SCALARS,
        "a bool, int of 64 bits, float or complex",
        "bools, ints of 64 bits, floats or complex numbers",
        _is_scalar,
        _scalar,
        None,
    ),
)
RULES: dict[AttrType, Rule] = {}
"""The rule of every type of attributes."""
_LIST_OF: dict[AttrType, AttrType] = {}
for _one, _list, _words, _several, _test, _convert, _plain in _KINDS:
    RULES[_one] = Rule(_words, _test, _convert, plain=_plain)
    RULES[_list] = Rule(f"a list of {_several}", _test, _convert, many=True, plain=_plain)
    _LIST_OF[_one] = _list


def fitting(value: Any, kind: AttrType) -> Any:
    """A value as an attribute of some type keeps it.

    Args:
        value: What was given. A BlockDesc stands for its index, 0 and 1 stand for bools, and a tuple for a list.
        kind: The type of the attribute.

    Returns:
        The value in Python's own types, a new list for a list; None when it is no value of that type.
    """
    _, test, convert, many, plain = RULES[kind]
    if not many:
        return value if type(value) is plain else convert(value) if test(value) else None
    if plain is not None and type(value) is list and set(map(type, value)) == {plain}:
        return value.copy()
    return list(map(convert, value)) if isinstance(value, list | tuple) and all(map(test, value)) else None


def attr_type_of(value: Any) -> AttrType:
    """The AttrType that a Python value stands for: float is FLOAT, an int is INT where 32 bits are enough, else LONG.

    Raises:
        AttributeValueError: When there is none or (an empty list) when it can't be told.
    """
    if _is_block(value):
        return AttrType.BLOCK
    if isinstance(value, list | tuple):
        kinds = {attr_type_of(v) for v in value}
        if kinds == {AttrType.INT, AttrType.LONG}:
            kinds = {AttrType.LONG}
        elif kinds in ({AttrType.INT, AttrType.FLOAT}, {AttrType.LONG, AttrType.FLOAT}):
            kinds = {AttrType.FLOAT}
        if len(kinds) == 1 and (kind := kinds.pop()) in _LIST_OF:
            return _LIST_OF[kind]
        raise AttributeValueError(
            f"the attribute type of {value!r} can't be told; pass it, for example type=AttrType.INTS for an empty list"
        )
    if _is_bool(value):
        return AttrType.BOOLEAN
    for kind in (AttrType.INT, AttrType.LONG, AttrType.FLOAT, AttrType.STRING, AttrType.SCALAR):
        if RULES[kind].test(value) and not (kind is AttrType.FLOAT and _is_int(value)):
            return kind
    raise AttributeValueError(
        f"{value!r} ({type(value).__name__}) can't be an attribute; expected bool, int of 64 bits, float, complex, "
        "str, a BlockDesc, or a list of one of these"
    )


def converted(value: Any, kind: AttrType) -> Any:
    """A value as an attribute of some type keeps it; see `fitting`.

    Args:
        value: What was given.
        kind: The type of the attribute.

    Returns:
        The value in Python's own types; a BlockDesc becomes its index.

    Raises:
        AttributeValueError: It is no value of that type; the message says what was expected.
    """
    found = fitting(value, kind)
    if found is None:
        raise AttributeValueError(f"{value!r} can't be an attribute of type {kind.name}; expected {RULES[kind].words}")
    return found


Slots = dict[str, list[str]]

_BLOCKS = frozenset({AttrType.BLOCK, AttrType.BLOCKS})
_VARS = frozenset({AttrType.VAR, AttrType.VARS})


class OpDesc:
    """An op: type, inputs and outputs (slot -> names of variables), attributes.

    Args:
        attrs: Python values; a BLOCK is the index of the block.
        attr_types: Their types on the wire, filled by `set_attr`.

    Attributes:
        is_target: Whether the op is wanted for its effect when a program is pruned.
        edits: Number of changes by methods, by which prepared programs notice that the op changed.
        origin: The position that it had before passes moved it, by which random numbers are drawn; None when none did.
    """

    __slots__ = (
        "_attr_order",
        "_explicit",
        "_extra",
        "attr_types",
        "attrs",
        "edits",
        "inputs",
        "is_target",
        "origin",
        "outputs",
        "type",
    )

    def __init__(
        self,
        type: str,
        inputs: Mapping[str, Sequence[str] | str] | None = None,
        outputs: Mapping[str, Sequence[str] | str] | None = None,
        attrs: Mapping[str, Any] | None = None,
        attr_types: Mapping[str, AttrType] | None = None,
    ) -> None:
        """A slot may be one name instead of a list; `attr_types` is for values that do not tell their type."""
        self.type = type
        self.inputs: Slots = _slots(inputs)
        self.outputs: Slots = _slots(outputs)
        self.attrs: dict[str, Any] = {}
        self.attr_types: dict[str, AttrType] = {}
        self.is_target = False
        self.origin: int | None = None
        self.edits = 0
        self._explicit = 0
        self._extra: dict[tuple[Any, ...], bytes] | None = None
        # Fluid writes some attributes twice; then the names as they came
        self._attr_order: list[str] | None = None
        for name, value in (attrs or {}).items():
            self.set_attr(name, value, (attr_types or {}).get(name))

    def input(self, slot: str) -> list[str]:
        """Names in an input slot; [] when the slot is absent (old programs write absent slots as empty ones)."""
        return self.inputs.get(slot, [])

    def output(self, slot: str) -> list[str]:
        """Names in an output slot; [] when the slot is absent."""
        return self.outputs.get(slot, [])

    def input_arg_names(self) -> list[str]:
        """Names of all inputs, in slot order, with repetitions."""
        return [name for names in self.inputs.values() for name in names]

    def output_arg_names(self) -> list[str]:
        """Names of all outputs, in slot order, with repetitions."""
        return [name for names in self.outputs.values() for name in names]

    def attr(self, name: str, default: Any = None) -> Any:
        return self.attrs.get(name, default)

    def set_attr(self, name: str, value: Any, type: AttrType | None = None) -> None:
        """Set an attribute.

        Args:
            type: Its type on the wire; None means the type that it has, or else the one that the value stands for.

        Raises:
            AttributeValueError: The message names the op and the attribute when the value is not of that type.
        """
        try:
            if type is None:
                type = self.attr_types.get(name)
            if type is None:
                type = attr_type_of(value)
            value = converted(value, type)
        except AttributeValueError as e:
            raise AttributeValueError(f"op {self.type}: attribute {name!r}: {e}") from None
        self.attrs[name] = value
        self.attr_types[name] = type
        self.edits += 1

    def remove_attr(self, name: str) -> None:
        """Remove an attribute; nothing happens when it is absent."""
        self.attrs.pop(name, None)
        self.attr_types.pop(name, None)
        self.edits += 1

    def rename_input(self, old: str, new: str) -> None:
        """Let the op read variable `new` wherever it read `old`."""
        _rename(self.inputs, old, new)
        self.edits += 1

    def rename_output(self, old: str, new: str) -> None:
        """Let the op write variable `new` wherever it wrote `old`."""
        _rename(self.outputs, old, new)
        self.edits += 1

    def block_attrs(self) -> dict[str, list[int]]:
        """Attributes of type BLOCK and BLOCKS: name -> indices of the blocks."""
        return self._listed(_BLOCKS)

    def var_attrs(self) -> dict[str, list[str]]:
        """Attributes of type VAR and VARS: name -> names of the variables that hold the value."""
        return self._listed(_VARS)

    def _listed(self, types: frozenset[AttrType]) -> dict[str, list[Any]]:
        """Attributes of some types, each as a list."""
        if types.isdisjoint(self.attr_types.values()):  # nearly always, and asked of every op when a model is loaded
            return {}
        values = {name: self.attrs[name] for name, type in self.attr_types.items() if type in types}
        return {name: value if isinstance(value, list) else [value] for name, value in values.items()}

    def sub_blocks(self) -> Iterator[int]:
        """Indices of all blocks that the op's attributes name."""
        for indices in self.block_attrs().values():
            yield from indices

    def with_variables(self, inputs: Slots, outputs: Slots) -> OpDesc:
        """The same op over other variables, for reading: it shares its attributes with this one."""
        op = OpDesc.__new__(OpDesc)
        op.type, op.is_target, op.edits, op._explicit = self.type, self.is_target, 0, self._explicit
        op.origin, op.inputs, op.outputs = self.origin, inputs, outputs
        # Not copied: facts are worked out for every op of a program, and change no attribute.
        op.attrs, op.attr_types, op._extra, op._attr_order = self.attrs, self.attr_types, self._extra, self._attr_order
        return op

    def clone(self) -> OpDesc:
        """An independent copy."""
        op = OpDesc.__new__(OpDesc)
        op.type, op.is_target, op.edits, op._explicit = self.type, self.is_target, 0, self._explicit
        op.origin = self.origin
        op.inputs = {slot: list(names) for slot, names in self.inputs.items()}
        op.outputs = {slot: list(names) for slot, names in self.outputs.items()}
        op.attrs = {k: list(v) if isinstance(v, list) else v for k, v in self.attrs.items()}
        op.attr_types = dict(self.attr_types)
        op._extra = self._extra and dict(self._extra)
        op._attr_order = self._attr_order
        return op

    def __str__(self) -> str:
        args = [f"{slot}={names}" for slot, names in self.inputs.items() if names]
        args += [f"{k}={_shown(self, k, v)}" for k, v in self.attrs.items() if k not in _UNSHOWN]
        left = ", ".join(self.output_arg_names())
        return f"{left} = {self.type}({', '.join(args)})" if left else f"{self.type}({', '.join(args)})"

    def __repr__(self) -> str:
        return f"<OpDesc {self}>"


# Python tracebacks and bookkeeping of the passes: long, and no part of what an op computes
_UNSHOWN = frozenset({"op_callstack", "op_role", "op_role_var", "op_namescope", "op_device", "with_quant_attr"})


def _shown(op: OpDesc, name: str, value: Any) -> str:
    kind = op.attr_types.get(name)
    if kind is AttrType.BLOCK:
        return f"block {value}"
    if kind in (AttrType.FLOAT, AttrType.FLOATS):
        return f"[{', '.join(f'{v:.7g}' for v in value)}]" if isinstance(value, list) else f"{value:.7g}"
    return repr(value)


def _slots(given: Mapping[str, Sequence[str] | str] | None) -> Slots:
    return {slot: [names] if isinstance(names, str) else list(names) for slot, names in (given or {}).items()}


def _rename(slots: Slots, old: str, new: str) -> None:
    for names in slots.values():
        for i, name in enumerate(names):
            if name == old:
                names[i] = new
