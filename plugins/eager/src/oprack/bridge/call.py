"""BridgedOp: how another framework calls an op, by the names and in the order of oprack.functional."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from oprack.errors import InvalidArgumentError, UnimplementedError, UnknownOpError
from oprack.functional.op_function import OpFunction, op_function
from oprack.interpreter.eager import EAGER, metas_of
from oprack.interpreter.modes import current_mode
from oprack.interpreter.op_expr import OpExpr
from oprack.op.proto import SlotProto
from oprack.op.signature import snake_case
from oprack.packs.changes import on_change
from oprack.packs.manager import default_manager
from oprack.types import AttrType, dtype_enum

_NEVER = (AttrType.BLOCK, AttrType.BLOCKS, AttrType.VAR, AttrType.VARS)


class BridgedOutput(NamedTuple):
    """A result of a call, which has the same form in every call.

    Attributes:
        slot: The output slot.
        listed: Whether it is a list: of as many tensors as the call asks for, or of none or one where the output may be
            left out, as gradients may.
    """

    slot: SlotProto
    listed: bool


class BridgedOp:
    """An op as other frameworks register it.

    Args:
        function: What calls of the op share.

    Attributes:
        type: The op.
        info: Its OpInfo.
        signature: How oprack.functional calls it.
        outputs: All outputs in the order of the OpProto, those that it keeps for its own gradient included.
        counted: Whether calls may say how many tensors each output gets.

    Raises:
        UnimplementedError: The op runs a block of a program.
    """

    def __init__(self, function: OpFunction) -> None:
        self._function = function
        self.type, self.info, self.signature = function.type, function.info, function.signature
        proto = function.proto
        if any(a.type in _NEVER for a in proto.attrs.values()):
            raise UnimplementedError(
                f"op {self.type} runs a block of a program, so it can't be an op of another framework; use that "
                "framework's own loops and branches"
            )
        self.outputs = [
            BridgedOutput(s, s.duplicable or s.dispensable or "@GRAD" in s.name) for s in proto.outputs.values()
        ]
        self.counted = any(o.listed for o in self.outputs)
        self._parameters = {p.slot.name: p.name for p in self.signature.parameters if p.slot is not None}

    def __repr__(self) -> str:
        return f"<BridgedOp {self.signature}>"

    def expression(
        self,
        values: Mapping[str, Any],
        attrs: Mapping[str, Any],
        counts: Sequence[int] | None = None,
        in_place: Mapping[str, str] | None = None,
    ) -> tuple[OpExpr, list[Any]]:
        """The expression of a call, and its tensors one after the other.

        Args:
            values: Tensors of any framework by the name of their parameter: lists for duplicable inputs, None for
                absent ones.
            attrs: Attributes by the name of their parameter; None: the default.
            counts: How many tensors each output gets; None: as inputs and attributes say.
            in_place: Input slot -> output slot that overwrites it.

        Returns:
            Both. The expression is the same object for equal calls.

        Raises:
            InvalidArgumentError: An input is missing, there is no such attribute, or as many counts as outputs.
            AttributeValueError: An attribute has another type or a value out of bounds.
        """
        function = self._function
        flat, arity = function.flattened([values.get(self._parameters[s.name]) for s in function.slots])
        numbers: dict[str, int] = {}
        if counts is not None:
            if len(counts) != len(self.outputs):
                raise InvalidArgumentError(
                    f"op {self.type}: num_outputs is {list(counts)}; expected a number for each of its outputs "
                    f"{', '.join(o.slot.name for o in self.outputs)}"
                )
            numbers = {o.slot.name: int(n) for o, n in zip(self.outputs, counts, strict=True) if o.listed}
        plain = {n: v for n, v in attrs.items() if v is not None}
        return function.expression(flat, arity, plain, numbers, in_place or {}, flat=True), flat

    def plain(self, attrs: Mapping[str, Any]) -> tuple[dict[str, Any], list[int] | None]:
        """Attributes of a call as functions of oprack.functional take them, as plain values.

        Args:
            attrs: By parameter, `num_outputs` included; dtypes may be names.

        Returns:
            The attributes that are not None, and how many tensors each output gets; None: as inputs and attributes say.

        Raises:
            InvalidArgumentError: num_outputs names no output.
        """
        given, known = {n: v for n, v in attrs.items() if v is not None}, self.signature.attrs
        asked = given.pop("num_outputs", None)
        for name, value in given.items():
            if isinstance(value, str) and name in known and known[name].type in (AttrType.INT, AttrType.LONG):
                given[name] = int(dtype_enum(value))
        return given, None if asked is None else self._counts(asked)

    def _counts(self, asked: Any) -> list[int]:
        if isinstance(asked, int):
            asked = {o.slot.name: asked for o in self.outputs if o.slot.duplicable}
        if not isinstance(asked, Mapping):
            return [int(n) for n in asked]
        named = {snake_case(o.slot.name): o.slot.name for o in self.outputs}
        numbers = {named.get(n, n): int(v) for n, v in asked.items()}
        if unknown := [n for n in numbers if n not in named.values()]:
            raise InvalidArgumentError(
                f"op {self.type}: num_outputs names {', '.join(map(str, unknown))}; expected some of its outputs "
                + ", ".join(map(str, named))
            )
        return [numbers.get(o.slot.name, int(not o.slot.dispensable)) for o in self.outputs]

    def arguments(self, expr: OpExpr, tensors: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any], list[int]]:
        """Back from an expression of the op to the arguments of a call.

        Args:
            expr: The expression.
            tensors: Its tensors.

        Returns:
            Tensors by parameter, attributes by parameter, and how many tensors each output gets.
        """
        values, k = dict[str, Any](), 0
        for slot, count in expr.inputs:
            part = list(tensors[k : k + count])
            values[self._parameters[slot]] = part if expr.proto.inputs[slot].duplicable else part[0]
            k += count
        given = ((n, a, expr.attrs.get(a.name)) for n, a in self.signature.attrs.items())
        attrs = {n: value for n, a, value in given if value is not None and (a.required or not _same(value, a.default))}
        made = {slot: len(flags) for slot, flags in expr.outputs}
        return values, attrs, [made.get(o.slot.name, 0) for o in self.outputs]

    def flat(self, expr: OpExpr, formed: Sequence[Any]) -> list[Any]:
        """Back from results in their form to those that an expression asks for, one after the other.

        Args:
            expr: The expression.
            formed: A tensor or a list for each output.

        Returns:
            As many as the expression says.
        """
        by_slot = {o.slot.name: p if o.listed else [p] for o, p in zip(self.outputs, formed, strict=True)}
        return [x for slot, flags in expr.outputs for x in by_slot[slot][: len(flags)]]

    def formed(self, expr: OpExpr, flat: Sequence[Any]) -> list[Any]:
        """The results of a call in their form: a tensor or a list for each output.

        Args:
            expr: The expression.
            flat: Its results one after the other.

        Returns:
            As many as there are outputs.
        """
        made, k = dict[str, list[Any]](), 0
        for slot, flags in expr.outputs:
            made[slot] = [x for x in flat[k : k + len(flags)] if x is not None]
            k += len(flags)
        parts = [made.get(o.slot.name, []) for o in self.outputs]
        return [part if o.listed else part[0] for o, part in zip(self.outputs, parts, strict=True)]

    def shown(self, formed: Sequence[Any]) -> Any:
        """What a function as in oprack.functional returns of the results.

        Args:
            formed: As `formed` gives them.

        Returns:
            One result, or a tuple; what the op keeps for its own gradient and what was not asked for is left out.
        """
        found = []
        for o, part in zip(self.outputs, formed, strict=True):
            if o.slot.intermediate or (o.listed and not part and not o.slot.duplicable):
                continue
            found.append(part if o.slot.duplicable or not o.listed else part[0])
        return found[0] if len(found) == 1 else tuple(found) or None


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and repr(value) == repr(default)  # 0.0 and -0.0 make different ops


_made: dict[str, BridgedOp] = {}
on_change(_made.clear)


def bridged_op(op_type: str) -> BridgedOp:
    """An op for other frameworks, kept until packs change.

    Args:
        op_type: The op.

    Returns:
        It.

    Raises:
        UnknownOpError: No pack brings the op; otherwise as `oprack.op_info`.
        UnimplementedError: The op runs a block of a program.
    """
    found = _made.get(op_type)
    if found is None:
        found = _made[op_type] = BridgedOp(op_function(op_type))
    return found


def bridged_ops() -> Iterator[str]:
    """The ops of all installed packs that other frameworks can call.

    Yields:
        Each op type.
    """
    manager = default_manager()
    for op_type in sorted({t for pack in manager.packs() for t in pack.op_types}):
        proto = manager.op_info(op_type).proto
        if op_type not in ("feed", "fetch") and not any(a.type in _NEVER for a in proto.attrs.values()):
            yield op_type


class BridgedFunctions:
    """The functions of a module that has one for each op, made on first use and kept until packs change.

    Args:
        module: The module's name, for messages.
        make: Makes the function of an op type.
    """

    def __init__(self, module: str, make: Callable[[str], Callable[..., Any]]) -> None:
        self._module, self._make, self._known = module, make, dict[str, Callable[..., Any]]()
        on_change(self._known.clear)

    def __call__(self, name: str) -> Callable[..., Any]:
        """What the module's `__getattr__` returns.

        Raises:
            AttributeError: No pack brings the op, or it is none for other frameworks.
        """
        if name.startswith("__"):
            raise AttributeError(f"module {self._module!r} has no attribute {name!r}")
        found = self._known.get(name)
        if found is None:
            try:
                found = self._known[name] = self._make(name)
            except (UnknownOpError, UnimplementedError) as error:
                raise AttributeError(str(error)) from error
        return found


def run(expr: OpExpr, tensors: Sequence[Any]) -> Sequence[Any]:
    """Run a call now, without recording it, by the kernels that the mode of this thread allows.

    Args:
        expr: The call, flat.
        tensors: oprack's tensors, None for absent ones.

    Returns:
        oprack's tensors one after the other, None for outputs that are not computed.
    """
    expr = expr.restricted(current_mode().rules)
    call = expr.calls.get(metas_of(tensors))
    found: Sequence[Any] = call(*tensors) if call is not None else EAGER.apply(expr, tensors)
    return found


__all__ = ["BridgedFunctions", "BridgedOp", "BridgedOutput", "bridged_op", "bridged_ops", "run"]
