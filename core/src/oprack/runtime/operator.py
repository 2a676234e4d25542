"""Operators: an OpDesc made runnable. Those of this base run themselves; `kernel_operator` has those with kernels."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.errors import CODE_ERRORS, OpError, OprackError, PreconditionNotMetError
from oprack.op import OpInfo
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.desc_rules import raised_by, told_of_stranger
from oprack.op.facets import CreatorFacet
from oprack.python.interruption import let_interruptions_pass
from oprack.tensor import LoDTensor, LoDTensorArray, Scope, SparseValue
from oprack.types import DTYPE_NAMES, EMPTY_VAR, AttrType

if TYPE_CHECKING:
    from oprack.desc import BlockDesc, OpDesc
    from oprack.runtime.run_context import RunContext

OPERATOR_CLASS_BY_PLACE: dict[str, type] = {}
"""Kind of place -> the class of operators at such places, for kinds that bring one of their own. Plugins add to it by
`class MyOperator(OperatorWithKernel, place="my_place")`."""


class OperatorBase(CreatorFacet):
    """An op of a block, with attributes checked and defaults filled in.

    Derive from it for ops that run themselves (while, conditional_block, feed) and define `run_impl(scope, run)`.

    Args:
        desc: The OpDesc.
        info: The OpInfo.
        block: The block that has it.
        index: Its position there.

    Attributes:
        inputs: Names of variables by input slot. Slots without variables are left out, and "@EMPTY@" stays in its
            position.
        outputs: Names of variables by output slot.
        attrs: All attributes.
        tensor_attrs: Attributes whose value the program takes from variables, with the names of these.
        key: Names the op in its program, whatever passes did to its position; random numbers are drawn by it.
        declined: Kernels that declined in the last run on the reference path, and why.

    Raises:
        AttributeValueError: An attribute is missing or out of range.
    """

    def __init__(self, desc: OpDesc, info: OpInfo, block: BlockDesc, index: int) -> None:
        self.desc, self.info, self.block, self.index = desc, info, block, index
        self.type = desc.type
        self.inputs = {s: tuple(names) for s, names in desc.inputs.items() if any(n != EMPTY_VAR for n in names)}
        self.outputs = {s: tuple(names) for s, names in desc.outputs.items() if names}
        self.tensor_attrs = {
            name: desc.attrs[name]
            for name, kind in desc.attr_types.items()
            if kind in (AttrType.VAR, AttrType.VARS)
            and name in info.proto.attrs
            and info.proto.attrs[name].type not in (AttrType.VAR, AttrType.VARS)
        }
        self.attrs: dict[str, Any] = (
            info.checker.stored(info.checker.check(desc.attrs, self.tensor_attrs)) if info.checker else dict(desc.attrs)
        )
        self.declined: dict[str, str] = {}
        self.key = f"{block.idx}/{index if desc.origin is None else desc.origin}/{self.type}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key}>"

    def input(self, slot: str) -> str:
        """Name of the only variable of an input slot.

        Raises:
            OpError: When there is none.
        """
        names = self.inputs.get(slot, ())
        if not names:
            raise OpError(f"op {self.type}: input {slot} is absent, but the op needs it")
        return names[0]

    def output(self, slot: str) -> str:
        """Name of the only variable of an output slot.

        Raises:
            OpError: When there is none.
        """
        names = self.outputs.get(slot, ())
        if not names:
            raise OpError(f"op {self.type}: output {slot} is absent, but the op needs it")
        return names[0]

    def wants(self, slot: str, i: int = 0) -> bool:
        """Whether output i of a slot is bound to a variable."""
        names = self.outputs.get(slot, ())
        return i < len(names) and names[i] != EMPTY_VAR

    def is_inplace(self, slot: str) -> bool:
        """Whether the op writes its input `slot`: the buffer of an output that has the same variable."""
        written = {n for names in self.outputs.values() for n in names if n != EMPTY_VAR}
        return any(n in written for n in self.inputs[slot])

    def output_dtype(self, slot: str) -> str | None:
        """dtype that the program declares for the first output of a slot; None when it does not say."""
        names = self.outputs.get(slot, ())
        var = self.block.find_var_recursive(names[0]) if names else None
        return DTYPE_NAMES.get(var.dtype) if var is not None and var.dtype is not None else None

    def run(self, scope: Scope, run: RunContext) -> None:
        """Run the op.

        Args:
            scope: Where its variables are.
            run: The run that it is part of.

        Raises:
            OprackError: As the op says, with the op, its variables with shapes and dtypes, and the line that created
                it.
            OpError: Something else went wrong in it. What interrupted it passes as it is
                (`oprack.python.interruption`).
        """
        start = time.perf_counter_ns() if run.profiler else 0
        try:
            self.run_impl(scope, run)
        except OpError:
            raise
        except OprackError as error:
            raise self._with_context(error, scope) from error
        except Exception as error:
            let_interruptions_pass()
            raise OpError(
                f"op {self.type} (pack {self.info.pack}) failed: {type(error).__name__}: {error}\n"
                f"{self.raised_by(error)}{self.describe(scope)}\n{self._remedy(error)}"
            ) from error
        if run.profiler:
            run.profiler.add(self.type, "op", start)

    def _remedy(self, error: Exception) -> str:
        """What to do about an error that is none of oprack's."""
        if isinstance(error, CODE_ERRORS):
            return f"No input causes that: mend the code{_last_line(error)}."
        return f"Check the shapes, dtypes and attributes above against `oprack op {self.type}`."

    def _with_context(self, error: OprackError, scope: Scope) -> OprackError:
        if getattr(error, "has_op_context", False):
            return error
        text = f"{told_of_stranger(error, self.info, self.kernels())}\n{self.describe(scope)}"
        try:
            extended = type(error)(text)
        except TypeError:
            extended = OpError(text)
        extended.has_op_context = True  # type: ignore[attr-defined]
        return extended

    def raised_by(self, error: BaseException) -> str:
        """A line such as "raised in kernel relu of my-pack (file:line)"; "" when nobody's code is known to have."""
        where, _ = raised_by(error, self.info, self.kernels())
        return f"raised{where}\n" if where else ""

    def kernels(self) -> Iterable[Any]:
        """The kernels that it may run; none for an op that runs itself."""
        return ()

    def describe(self, scope: Scope | None = None) -> str:
        """The op with its variables (shapes and dtypes, when a scope is given), attributes and creating line."""
        protos = self.info.proto.attrs
        attrs = [
            f"{k}={_short(v)}"
            for k, v in self.attrs.items()
            if k not in COMMON_ATTRS and (k not in protos or protos[k].default != v)
        ]
        lines = [f"op {self.type}, number {self.index} of block {self.block.idx}, pack {self.info.pack}"]
        lines += [*_described("input ", self.inputs, scope), *_described("output", self.outputs, scope)]
        if attrs:
            lines.append("  attributes " + ", ".join(attrs))
        lines += [f"  kernel {kernel} declined: {reason}" for kernel, reason in self.declined.items()]
        if where := created_at(self.attrs):
            lines.append(f"  created by {where}")
        return "\n".join(lines)

    def run_impl(self, scope: Scope, run: RunContext) -> None:
        """What the op does; every class has its own.

        Args:
            scope: Where its variables are.
            run: The run that it is part of.

        Raises:
            NotImplementedError: The class has none.
        """
        raise NotImplementedError(f"{type(self).__name__} must define run_impl(self, scope, run)")

    def set_output(self, scope: Scope, name: str, value: Any) -> None:
        """Set variable `name`, in this scope or the ancestor that has it; created here when nobody has."""
        if name != EMPTY_VAR:
            (scope.find_var(name) or scope.var(name)).value = value

    def get_input(self, scope: Scope, name: str) -> Any:
        """Value of variable `name`.

        Raises:
            PreconditionNotMetError: When it holds none.
        """
        var = scope.get_var(name)
        if var.value is None:
            raise PreconditionNotMetError(
                f"op {self.type}: variable {name!r} holds no value; feed it, load it, or run the op that writes it "
                "first"
            )
        return var.value

    def input_values(self, scope: Scope) -> dict[str, list[Any]]:
        """Values by input slot, None where a variable holds none."""
        return {slot: [_find(scope, n) for n in names] for slot, names in self.inputs.items()}


def _find(scope: Scope, name: str) -> Any:
    if name == EMPTY_VAR:
        return None
    var = scope.find_var(name)
    return var.value if var is not None else None


def describe_value(value: Any) -> str:
    """ "float32[2, 3] lod=[[0, 1, 2]]", "rows float32[10, 3] (2 rows)", "not set" ..."""
    if value is None:
        return "not set"
    if isinstance(value, LoDTensor):
        lod = f" lod={_short(value.lod)}" if value.lod else ""
        return f"{value.array.dtype}{list(value.shape)}{lod}"
    if isinstance(value, SparseValue):
        return f"{type(value).__name__} {value.elements.dtype}{list(value.shape)} ({value.listed})"
    if isinstance(value, LoDTensorArray):
        return f"LoDTensorArray of {len(value)}"
    return type(value).__name__


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _last_line(error: BaseException) -> str:
    """Where an exception was raised, as " at file:line, in function"."""
    entry = error.__traceback__
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is None:
        return ""
    code = entry.tb_frame.f_code
    return f" at {code.co_filename}:{entry.tb_lineno}, in {code.co_name}"


def _described(what: str, slots: Mapping[str, Sequence[str]], scope: Scope | None) -> Iterator[str]:
    """A line for each variable of some slots."""
    for slot, names in slots.items():
        for i, name in enumerate(names):
            label = slot if len(names) == 1 else f"{slot}[{i}]"
            value = ""
            if scope is not None:
                var = scope.find_var(name)
                value = ": " + describe_value(var.value if var else None)
            yield f"  {what} {label} = {name!r}{value}"


def created_at(attrs: Mapping[str, Any]) -> str:
    """The line of the user's program that created the op, from attribute op_callstack; "" when it is not recorded.

    The stack is pairs of lines as Python prints them, `File "x.py", line 3, in f` and the code, outermost first.
    """
    stack = attrs.get("op_callstack") or []
    frames = [line.strip() for line in stack if line.strip().startswith("File ")]
    users = [f for f in frames if "/paddle/" not in f and "/oprack/" not in f]
    chosen = (users or frames)[-1:]
    if not chosen:
        return ""
    i = next(k for k, line in enumerate(stack) if line.strip() == chosen[0])
    code = stack[i + 1].strip() if i + 1 < len(stack) else ""
    return f"{chosen[0]}: {code}" if code and not code.startswith("File ") else chosen[0]
