"""From the arguments of a call to an OpExpr and its tensors."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from oprack.cache import Cache
from oprack.eager_tensor import Tensor, split_edge
from oprack.errors import InvalidArgumentError, InvalidLoDError, OprackError
from oprack.functional.creation import to_tensor
from oprack.interpreter.eager import metas_of
from oprack.interpreter.modes import Mode, current_mode
from oprack.interpreter.op_expr import Arity, OpExpr, attr_key, default_outputs, require_no_block
from oprack.layers.append import lost_lod
from oprack.layers.variable import Variable
from oprack.names.spellings import keywords_instead, renamed, spellings, with_other_names
from oprack.op import OpInfo, OpProto
from oprack.op.proto import AttrProto
from oprack.op.signature import function_signature, outputs_along_axis, snake_case, told_outputs
from oprack.packs import op_for
from oprack.packs.manager import default_manager
from oprack.tensor.kinds import KINDS
from oprack.types import dtype_enum

# Attributes may come with the data.
_EXPRS = 1024
_VALUES = tuple(KINDS)


class OpFunction:
    """What all calls of one op share: its expressions, and generated functions by mode and metas of the arguments.

    table: what the function in oprack.functional looks up first; keys are made there.
    """

    def __init__(self, info: OpInfo) -> None:
        self.info, self.type = info, info.type
        self.proto: OpProto = info.proto
        self.signature = function_signature(self.proto)
        self.slots = list(self.proto.inputs.values())
        self.names = {slot.name: name for name, slot in self.signature.slots.items()}
        self.attrs = {a.param: a for a in self.proto.attrs.values()}
        self._slot_names = {s.param: n for s in self.slots if s.param not in (n := self.names[s.name], *self.attrs)}
        self._many = [s.name for s in self.proto.outputs.values() if s.duplicable]
        self._written_call = _written_call(self.type)
        self.table, self._exprs = Cache(_EXPRS), Cache(_EXPRS)

    def __call__(self, values: Sequence[Any], attrs: Mapping[str, Any], fast_key: Any = None) -> Any:
        """Call with one value per input slot (a list for a duplicable one, None for an absent one).

        attrs: by how Python spells them; None = the default. fast_key: where the generated function is put.
        """
        if not self._slot_names.keys().isdisjoint(attrs):
            slot, name = next((s, n) for s, n in self._slot_names.items() if s in attrs)
            raise InvalidArgumentError(f"op {self.type}: {slot} is the name of a slot; as an argument write {name}=")
        if self._written_call is not None and not self._may_be_op(values, attrs):
            found = self._as_written(values, (), attrs)
            if found is not None:
                return found
        mode = current_mode()
        in_place, asked = self._in_place(attrs.get("in_place")), attrs.get("num_outputs")
        given = {n: v for n, v in attrs.items() if v is not None and n not in ("in_place", "num_outputs")}
        if not given.keys() <= self.attrs.keys():
            given = renamed(self.attrs, given)
        flat, arity = self.flattened(values)
        if mode.static or any(map(_is_symbolic, (*flat, *given.values()))):
            self._require_tensors(flat, values, given)
            return self._append(flat, arity, given, asked, in_place, mode)
        args = self._tensors(flat, values, given)
        plain = {n: self._plain(n, v) for n, v in given.items()} if given else given
        numbers = self._asked(asked)
        expr = self.expression(args, arity, plain, numbers, in_place)
        if mode.rules is not expr.rules:
            expr = expr.restricted(mode.rules)
        try:
            result = mode.interpreter.apply(expr, args)
        except InvalidLoDError as error:
            said, newline, details = str(error).partition("\n")
            raise InvalidLoDError(said + _lost_lod(args) + newline + details) from error
        if fast_key is not None and not mode.wrappers and not (self._many and self._by_shape(arity, plain, numbers)):
            self._put(fast_key, mode, expr, args)
        return result

    def _tensors(self, flat: Sequence[Any], values: Sequence[Any], given: Mapping[str, Any]) -> list[Any]:
        return [v if v is None or type(v) is Tensor else self._tensor(v, values, given) for v in flat]

    def expression(
        self,
        args: Sequence[Any],
        arity: Arity,
        attrs: Mapping[str, Any],
        numbers: Mapping[str, int],
        in_place: Mapping[str, str],
        flat: bool = False,
    ) -> OpExpr:
        """The expression of a call; args may be tensors of any framework, of which shapes alone are read.

        Args:
            args: One for each input, those of a list one after the other.
            arity: How many each slot has.
            attrs: Attributes by how Python spells them, as plain values.
            numbers: Numbers of outputs by slot, where the call says them.
            in_place: Input slot -> output slot that overwrites it.
            flat: As for OpExpr.

        Returns:
            The expression, one for equal calls.

        Raises:
            InvalidArgumentError: The op has no such attribute, or nothing says how many outputs there are.
            AttributeValueError: An attribute has another type or a value out of bounds.
        """
        count = self._count(arity, attrs, args, numbers)
        key = (arity, attr_key(attrs), tuple(numbers.items()), count, flat, *in_place.items())
        expr: OpExpr | None = self._exprs[key]
        if expr is None:
            outputs = default_outputs(self.proto, numbers, count)
            expr = self._keep(key, OpExpr(self.info, self._checked(attrs), arity, outputs, in_place, flat))
        return expr

    def _keep(self, key: Any, expr: OpExpr) -> OpExpr:
        """Keep an expression for calls with these attributes, which may be any number where they come with data."""
        self._exprs[key] = expr
        return expr

    def _put(self, fast_key: Any, mode: Mode, expr: OpExpr, args: Sequence[Any]) -> None:
        """Put the call that was generated for these metas where the function finds it without this class."""
        call = (expr.grad_calls if mode.grad else expr.calls).get(metas_of(args))
        if call is not None and all(a is not None for a in args):
            self.table[(mode, *fast_key[1:])] = call  # the first call of a thread comes without a mode

    def _require_tensors(self, flat: Sequence[Any], values: Sequence[Any], given: Mapping[str, Any]) -> None:
        for v in flat:
            if v is not None and not isinstance(v, Tensor | Variable) and not _is_array(v):
                raise self._no_tensor(v, values, given)

    def _in_place(self, asked: Any) -> dict[str, str]:
        """Input slots and the outputs that are written to them: those that the op declares, or these."""
        if not asked:
            return {}
        pairs = dict(self.info.inplace) if asked is True else dict(asked) if isinstance(asked, Mapping) else {}
        if not pairs or any(x not in self.proto.inputs or out not in self.proto.outputs for x, out in pairs.items()):
            raise InvalidArgumentError(
                f"op {self.type}: in_place is {asked!r}; expected {{input slot: output slot}}, or True for the pairs "
                f"that the op declares, {dict(self.info.inplace) or 'which are none'}"
            )
        return pairs

    # Inputs -----------------------------------------------------------------------------------------------------------
    def flattened(self, values: Sequence[Any]) -> tuple[list[Any], Arity]:
        """The inputs of a call one after the other, and how many each slot has.

        Args:
            values: One value per input slot, a list for a duplicable one, None for an absent one.

        Returns:
            Both.

        Raises:
            InvalidArgumentError: An input that has to be there is missing.
        """
        flat: list[Any] = []
        arity = []
        for slot, value in zip(self.slots, values, strict=True):
            if slot.duplicable:
                items = [] if value is None else list(value) if isinstance(value, list | tuple) else [value]
                if not items and not slot.dispensable:
                    raise InvalidArgumentError(
                        f"op {self.type}: {self.names[slot.name]} is {value!r}; expected tensors: {slot.doc}"
                    )
            elif value is None:
                if not slot.dispensable:
                    raise InvalidArgumentError(
                        f"op {self.type}: {self.names[slot.name]} is missing; expected a tensor: {slot.doc}"
                    )
                continue
            else:
                items = [value]
            if items:
                flat += items
                arity.append((slot.name, len(items)))
        return flat, tuple(arity)

    def _tensor(self, value: Any, values: Sequence[Any], attrs: Mapping[str, Any]) -> Tensor:
        if isinstance(value, Tensor):
            return value
        if _is_array(value):
            return to_tensor(value)
        raise self._no_tensor(value, values, attrs)

    def _no_tensor(self, value: Any, values: Sequence[Any], attrs: Mapping[str, Any]) -> Exception:
        slot = next(
            s
            for s, v in zip(self.slots, values, strict=True)
            if v is value or (s.duplicable and isinstance(v, list | tuple) and any(item is value for item in v))
        )
        from oprack.functional.advice import no_tensor  # imported on the way to an error alone

        one_dtype = self.info.expected_kernel_type is None
        return no_tensor(self.signature, slot, value, values, attrs, one_dtype=one_dtype)

    # Calls that can't be the op's -----------------------------------------------------------------------------------
    def _may_be_op(self, values: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
        """Whether each input is a tensor and each attribute is one of the op's."""
        if not attrs.keys() <= {*self.attrs, *self.proto.attrs, *self._slot_names, "in_place", "num_outputs"}:
            return False
        flat = [v for value in values for v in (value if isinstance(value, list | tuple) else (value,))]
        return all(v is None or isinstance(v, Tensor | Variable) or _is_array(v) for v in flat)

    def _as_written(self, values: Sequence[Any], rest: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The result of the function that a pack writes under the op's name; None where it does not take such a call,
        so that what is wrong is said in the op's own words.
        """
        by_slot = dict(zip((s.name for s in self.slots), values, strict=True))
        ordered = sorted(self.slots, key=lambda s: s.dispensable)  # as the generated function takes them
        args = [by_slot[s.name] for s in ordered]
        while args and args[-1] is None and not rest:
            args.pop()
        assert self._written_call is not None
        try:
            return self._written_call(*args, *rest, **attrs)
        except (AttributeError, OprackError, TypeError):
            return None

    def with_rest(self, values: Sequence[Any], rest: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Call with positional values after the inputs, which only a function of a pack takes.

        Raises:
            InvalidArgumentError: No call of that function is meant.
        """
        if self._written_call is not None and (found := self._as_written(values, rest, attrs)) is not None:
            return found
        from oprack.functional.advice import too_many

        raise too_many(self.signature, values, rest, attrs)

    # Attributes -------------------------------------------------------------------------------------------------------
    def _proto(self, name: str) -> AttrProto:
        found = self.attrs.get(name) or self.proto.attrs.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self.attrs, 3) or list(self.attrs)
            raise InvalidArgumentError(
                f"op {self.type} has no attribute {name!r}; expected "
                + (", ".join(near) if near else "none, since it has no attributes")
                + keywords_instead(self.attrs, {name: ...})
            )
        return found

    def _plain(self, name: str, value: Any) -> Any:
        """A tensor as the numbers it holds, a dtype's name as its number on the wire."""
        if isinstance(value, Tensor):
            proto = self._proto(name)
            return value.numpy().ravel().tolist() if proto.type.name.endswith("S") else value.item()
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, list | tuple) and any(isinstance(v, Tensor) for v in value):
            return [v.item() if isinstance(v, Tensor) else v for v in value]
        if isinstance(value, str) and name.endswith("dtype") and self._proto(name).type.name == "INT":
            return int(dtype_enum(value))
        return value

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        require_no_block(self.proto)
        named = {self._proto(n).name: v for n, v in given.items()}
        return self.info.checker.check(named) if self.info.checker is not None else named

    # Outputs ----------------------------------------------------------------------------------------------------------
    def _asked(self, asked: Any) -> dict[str, int]:
        """Numbers of outputs by slot."""
        if asked is None:
            return {}
        many = [s for s in self.proto.outputs.values() if s.duplicable]
        if isinstance(asked, int) and len(many) == 1:
            return {many[0].name: asked}
        if isinstance(asked, Mapping):
            by_name = {snake_case(slot): slot for slot in self.proto.outputs}
            named = {by_name.get(str(n), str(n)): int(v) for n, v in asked.items()}
            if all(n in self.proto.outputs for n in named):
                return named
        raise InvalidArgumentError(
            f"op {self.type}: num_outputs is {asked!r}; expected how many tensors each of its outputs "
            f"{', '.join(self.proto.outputs)} gets, as {{slot: number}}"
        )

    def _count(self, arity: Arity, given: Mapping[str, Any], args: Sequence[Any], asked: Mapping[str, int]) -> int:
        """How many tensors a duplicable output gets that nobody gave a number for."""
        if all(s in asked for s in self._many):
            return 1
        told = told_outputs(self.proto, given, dict(arity))
        return outputs_along_axis(self.proto, given, args[0].shape if args else None) if told is None else told

    def _by_shape(self, arity: Arity, given: Mapping[str, Any], asked: Mapping[str, int]) -> bool:
        """Whether the number of outputs follows from a shape, so that calls of these metas differ."""
        return not all(s in asked for s in self._many) and told_outputs(self.proto, given, dict(arity)) is None

    # Programs ---------------------------------------------------------------------------------------------------------
    def _append(
        self, flat: Sequence[Any], arity: Any, given: Mapping[str, Any], asked: Any, in_place: Any, mode: Mode
    ) -> Any:
        attrs = {self._proto(n).name: self._plain(n, v) for n, v in given.items()}
        flat, arity = self._with_numbers_of_runs(flat, arity, attrs)
        attrs = {n: _all_symbolic(v) for n, v in attrs.items()}
        static = mode if mode.static else mode.but(static=True)
        numbers = self._asked(asked)
        outputs = default_outputs(self.proto, numbers, self._count(arity, attrs, flat, numbers))
        return static.interpreter.apply(OpExpr(self.info, attrs, arity, outputs, in_place), flat)

    def _with_numbers_of_runs(
        self, flat: Sequence[Any], arity: Sequence[tuple[str, int]], attrs: dict[str, Any]
    ) -> tuple[list[Any], tuple[tuple[str, int], ...]]:
        """The inputs of a call, with attributes that are known at run time in the slots that the op has for them."""
        values, first = dict[str, list[Any]](), 0
        for slot, count in arity:
            values[slot] = list(flat[first : first + count])
            first += count
        for name, value in list(attrs.items()):
            many = isinstance(value, list | tuple)
            found = slot_of_attr(self.proto, name, many) if _is_symbolic(value) else None
            if found is not None and found not in values:
                values[found] = _all_symbolic(value) if many else [value]
                if many:
                    attrs[name] = [-1 if isinstance(v, Variable) else v for v in value]
                else:
                    del attrs[name]
        present = [slot for slot in self.proto.inputs if slot in values]
        return [v for slot in present for v in values[slot]], tuple((slot, len(values[slot])) for slot in present)


def _lost_lod(args: Sequence[Any]) -> str:
    """The recorded call, if there is one, that read sequences and whose result has no LoD any more."""
    wanted, seen = [a._node for a in args if isinstance(a, Tensor) and not a.lod_level], set[int]()
    while wanted:
        node = wanted.pop(0)
        bound = getattr(getattr(node, "rule", None), "bound", None)
        if bound is None or id(node) in seen:
            continue
        seen.add(id(node))
        if any(m is not None and m.lod_level for m in bound.metas):
            return lost_lod(bound.expr.type, "its input")
        wanted += [edge[0] for edge in map(split_edge, node.next) if edge is not None]
    return ""


def _written_call(op_type: str) -> Callable[..., Any] | None:
    """The function that is meant by calls that can't be the op's, where it computes the same."""
    manager = default_manager()
    if not manager.has_layer(
        "functional", op_type
    ):  # asked first: most ops have none, and the table is read for the rest
        return None
    if op_type not in spellings().get("calls", {}).get("functional", ()):
        return None
    return with_other_names(manager.layer("functional", op_type))


def slot_of_attr(proto: OpProto, name: str, many: bool) -> str | None:
    """The input slot that takes an attribute's value where it is known only at run time.

    Args:
        proto: The op.
        name: The attribute, such as shape.
        many: Whether the slot takes a variable for each number, as ShapeTensorList; otherwise one for all, as Shape.

    Returns:
        The slot; None for an attribute without one.
    """
    if proto.attrs[name].support_tensor:
        return None
    wanted = name.replace("_", "").lower().rstrip("s")
    for slot, p in proto.inputs.items():
        plain = slot.replace("_", "").lower().replace("tensor", "").replace("list", "").rstrip("s")
        if p.dispensable and p.duplicable == many and (plain == wanted or (many and plain.endswith(wanted))):
            return slot
    return None


def _is_array(value: Any) -> bool:
    return (
        isinstance(value, _VALUES)
        or hasattr(value, "__array_interface__")
        or hasattr(value, "__cuda_array_interface__")
    )


def _is_symbolic(value: Any) -> bool:
    """Whether it is a Variable, or a list with one."""
    return isinstance(value, Variable) or (isinstance(value, list | tuple) and any(map(_is_symbolic, value)))


def _all_symbolic(value: Any) -> Any:
    """A list with Variables and numbers as one with Variables alone."""
    if not isinstance(value, list | tuple) or not _is_symbolic(value):
        return value
    first = next(v for v in value if isinstance(v, Variable))
    attrs = {"shape": [1], "dtype": int(dtype_enum(first.dtype))}
    return [
        v
        if isinstance(v, Variable)
        else first._apply(op_for("constant"), {}, attrs | {"value": float(v), "str_value": str(v)})
        for v in value
    ]


_functions: dict[str, OpFunction] = {}


def op_function(op_type: str) -> OpFunction:
    """The OpFunction of an op, kept until packs change. Raises as `oprack.op_info`."""
    found = _functions.get(op_type)
    if found is None:
        found = _functions[op_type] = OpFunction(default_manager().op_info(op_type))
    return found


def forget() -> None:
    """Drop every choice made so far: packs were added, blocked or replaced."""
    for function in _functions.values():
        function.table.clear()
    _functions.clear()
