"""OpDesc: an op of a program as data: its type, the names in its slots, and its attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oprack.desc.attr_values import attr_type_of, convert
from oprack.errors import AttributeValueError
from oprack.types import AttrType

Slots = dict[str, list[str]]

_BLOCKS = frozenset({AttrType.BLOCK, AttrType.BLOCKS})
_VARS = frozenset({AttrType.VAR, AttrType.VARS})


class OpDesc:
    """An op: type, inputs and outputs (slot -> names of variables), attributes.

    Args:
        type: The op type.
        inputs: Input slot -> names, or one name.
        outputs: Output slot -> the same.
        attrs: Python values; a BLOCK is the index of the block.
        attr_types: Types of attributes whose values do not tell them, such as an empty list.

    Attributes:
        attr_types: The type of every attribute on the wire, filled by `set_attr`.
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
        # Names of the attributes in the order of the file, kept only where it has one of them twice, as Fluid's may.
        self._attr_order: list[str] | None = None
        types = attr_types or {}
        for name, value in (attrs or {}).items():
            self.set_attr(name, value, types.get(name))

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
            value = convert(value, type)
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
        return self._attrs_as_lists(_BLOCKS)

    def var_attrs(self) -> dict[str, list[str]]:
        """Attributes of type VAR and VARS: name -> names of the variables that hold the value."""
        return self._attrs_as_lists(_VARS)

    def _attrs_as_lists(self, types: frozenset[AttrType]) -> dict[str, list[Any]]:
        """Attributes of some types: name -> their value, a single one as a list of one."""
        if types.isdisjoint(self.attr_types.values()):  # so of nearly all ops, and loading a model asks every one
            return {}
        values = {name: self.attrs[name] for name, type in self.attr_types.items() if type in types}
        return {name: value if isinstance(value, list) else [value] for name, value in values.items()}

    def sub_blocks(self) -> Iterator[int]:
        """Indices of all blocks that the op's attributes name."""
        for indices in self.block_attrs().values():
            yield from indices

    def with_variables(self, inputs: Slots, outputs: Slots) -> OpDesc:
        """The same op with other variables. It shares its attributes with this one, so nobody may change it."""
        op = OpDesc.__new__(OpDesc)
        op.type, op.is_target, op.edits, op._explicit = self.type, self.is_target, 0, self._explicit
        op.origin, op.inputs, op.outputs = self.origin, inputs, outputs
        # Attributes are not copied, since passes ask for such an op for every op of a program and only read it.
        op.attrs, op.attr_types, op._extra, op._attr_order = self.attrs, self.attr_types, self._extra, self._attr_order
        return op

    def clone(self) -> OpDesc:
        """An independent copy."""
        op = self.with_variables(_slots(self.inputs), _slots(self.outputs))
        op.attrs = {k: list(v) if isinstance(v, list) else v for k, v in self.attrs.items()}
        op.attr_types = dict(self.attr_types)
        op._extra = self._extra and dict(self._extra)
        return op

    def __str__(self) -> str:
        args = [f"{slot}={names}" for slot, names in self.inputs.items() if names]
        args += [f"{k}={_shown(self, k, v)}" for k, v in self.attrs.items() if k not in _HIDDEN_ATTRS]
        left = ", ".join(self.output_arg_names())
        return f"{left} = {self.type}({', '.join(args)})" if left else f"{self.type}({', '.join(args)})"

    def __repr__(self) -> str:
        return f"<OpDesc {self}>"


# str() leaves these out: tracebacks and notes of the passes are long, and no part of what an op computes.
_HIDDEN_ATTRS = frozenset({"op_callstack", "op_role", "op_role_var", "op_namescope", "op_device", "with_quant_attr"})


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
