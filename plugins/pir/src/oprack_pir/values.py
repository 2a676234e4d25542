"""Values of PIR and the variables of Fluid that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from oprack.desc import BlockDesc, VarDesc
from oprack.errors import CorruptModelError
from oprack.types import VarType

from oprack_pir.encoding import ListType, TensorType, Type

MAX_NAMES = 4_000_000
"""Names and numbers that the ops of one program may hold; lists are written out for each op that reads them."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is known: numbers, and the dims of the tensor that holds them."""

    numbers: tuple[bool | int | float, ...]
    scalar: bool
    dtype: VarType


@dataclass(frozen=True, slots=True)
class Value:
    """A value of PIR.

    Attributes:
        names: The variables that hold it: one, or those of a list; None for an absent entry of a list.
        constant: What is known of it.
        items: The values of a list that was put together from others.
    """

    names: tuple[str | None, ...]
    type: Type
    constant: Constant | None = None
    items: tuple[Value, ...] = ()


@dataclass(slots=True)
class Frame:
    """A block that is written, and the values that its operations see."""

    block: BlockDesc
    outer: Frame | None = None
    values: dict[int, Value] = field(default_factory=dict)

    def find(self, number: int, where: str) -> Value:
        """The value of an id, of this block or one around it.

        Raises:
            CorruptModelError: No operation before has made it.
        """
        frame: Frame | None = self
        while frame is not None:
            if number in frame.values:
                return frame.values[number]
            frame = frame.outer
        raise CorruptModelError(
            f"{where} reads value {number}, which no operation before it makes; the file was altered"
        )

    def define(self, number: int, value: Value, where: str) -> None:
        """Raises CorruptModelError when the block has that value already."""
        if number in self.values:
            raise CorruptModelError(
                f"{where} makes value {number}, which another one makes already; the file was altered"
            )
        self.values[number] = value


class Variables:
    """Makes variables with names that nothing else has, and counts what the program holds."""

    def __init__(self, taken: Mapping[int, str]) -> None:
        """taken: id of a value -> the name that it is to have."""
        self._wanted = dict(taken)
        self._used: set[str] = set(taken.values())
        self._held = 0
        self._dtypes: dict[str, VarType] = {}
        self._overwritten: set[str | None] = set()

    def claim(self, name: str, where: str) -> str:
        """Take a name as it is. Raises CorruptModelError when it is taken."""
        if name in self._used or not name:
            raise CorruptModelError(f"{where} has the name {name!r}, which is empty or taken; expected another one")
        self._used.add(name)
        return name

    def fresh(self, base: str) -> str:
        """A name that nothing else has."""
        name, number = base, 0
        while name in self._used:
            number += 1
            name = f"{base}.{number}"
        self._used.add(name)
        return name

    def hold(self, count: int) -> None:
        """Count names or numbers that an op holds. Raises CorruptModelError beyond MAX_NAMES."""
        self._held += count
        if self._held > MAX_NAMES:
            raise CorruptModelError(
                f"the ops of the program hold more than {MAX_NAMES} names and numbers; expected a program of Paddle"
            )

    def wanted(self, number: int) -> str | None:
        """The name that a value is to have, given once."""
        return self._wanted.pop(number, None)

    def declare(self, frame: Frame, name: str, type: TensorType | None) -> str:
        """A variable of a block."""
        if type is None:
            frame.block.vars[name] = VarDesc(name)
        else:
            frame.block.vars[name] = VarDesc(name, type.kind, type.dtype, type.shape)
            self._dtypes[name] = type.dtype
        return name

    def overwrite(self, value: Value) -> Value:
        """An op in place writes these variables: what they held is known no more."""
        self._overwritten.update(value.names)
        return self.now(value)

    def now(self, value: Value) -> Value:
        """A value with what is still known of it."""
        if not self._overwritten.intersection(value.names):
            return value
        return Value(value.names, value.type, None, tuple(self.now(item) for item in value.items))

    def dtype(self, name: str) -> VarType | None:
        """Dtype of a variable."""
        return self._dtypes.get(name)

    def result(self, frame: Frame, number: int, type: Type, base: str) -> Value:
        """Variables for a result of an operation, declared in its block."""
        self.hold(len(type.items) if isinstance(type, ListType) else 1)
        if isinstance(type, ListType):
            names = [self.declare(frame, self.fresh(f"{base}_{number}.{i}"), t) for i, t in enumerate(type.items)]
            return Value(tuple(names), type)
        name = self.wanted(number) or self.fresh(f"{base}_{number}")
        return Value((self.declare(frame, name, type),), type)


def tensor_type(value: Value) -> TensorType | None:
    """The type of a value that is no list."""
    return value.type if isinstance(value.type, TensorType) else None


def is_array(value: Value) -> bool:
    """Whether a value is an array of tensors."""
    return isinstance(value.type, TensorType) and value.type.kind is VarType.LOD_TENSOR_ARRAY
