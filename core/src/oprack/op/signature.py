"""How Python calls an op: parameters, results, documentation, for functions of layers and eager calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from oprack.errors import InvalidArgumentError
from oprack.op.proto import AttrProto, OpProto, SlotProto, param_name
from oprack.types import AttrType

__all__ = ["OpParameter", "OpSignature", "function_signature", "layer_signature"]

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_RUNTIME = ("mkldnn", "cudnn")


def snake_case(slot: str) -> str:
    """How a slot is spelled: `X` -> x, `LabelLength` -> label_length, `Out@GRAD` -> out_grad."""
    return param_name(_WORDS.sub("_", slot.replace("@GRAD", "_grad")).lower())


def input_names(proto: OpProto) -> dict[str, str]:
    """Spelling by input slot. Where an attribute has it already, the slot holds a tensor in place of that attribute:
    `Shape` beside the attribute shape is shape_input.
    """
    taken = {a.param for a in proto.attrs.values()}
    return {slot: name + "_input" if (name := snake_case(slot)) in taken else name for slot in proto.inputs}


def output_names(slots: Iterable[str]) -> list[str]:
    """Spellings of output slots."""
    return [snake_case(slot) for slot in slots]


def shown_attrs(proto: OpProto) -> dict[str, AttrProto]:
    """Attributes that matter to a caller, by spelling: those that define the op, not how a library runs it."""
    return {
        a.param: a
        for a in proto.attrs.values()
        if a.param.isidentifier() and not (a.extra or a.generated or any(word in a.param for word in _RUNTIME))
    }


def told_outputs(proto: OpProto, attrs: Mapping[str, Any], counts: Mapping[str, int]) -> int | None:
    """How many tensors a duplicable output gets, where attributes or the number of inputs say it.

    Args:
        proto: The op's OpProto.
        attrs: Values of attributes, by name; others have their defaults.
        counts: How many tensors each input slot holds.

    Returns:
        The number; None when a shape has to say it.
    """
    sections, number = (_value(proto, attrs, name) for name in ("sections", "num"))
    if sections:
        return len(sections)
    if isinstance(number, int) and number > 0:
        return number
    return next((n for slot, n in counts.items() if proto.inputs[slot].duplicable), None)


def outputs_along_axis(proto: OpProto, attrs: Mapping[str, Any], shape: Sequence[int] | None) -> int:
    """How many tensors a duplicable output gets that holds one for each index along the attribute axis.

    Args:
        proto: The op's OpProto.
        attrs: Values of attributes, by name; others have their defaults.
        shape: Shape of the first input, -1 for dims that are not known; None when there is no input.

    Returns:
        The number.

    Raises:
        InvalidArgumentError: The shape has no such dim, or nothing says the number.
    """
    axis = _value(proto, attrs, "axis")
    if isinstance(axis, int) and shape is not None:
        rank = len(shape)
        if not -rank <= axis < rank:
            raise InvalidArgumentError(
                f"op {proto.type}: axis is {axis}; expected a dim of shape {list(shape)}, from {-rank} to {rank - 1}"
            )
        if shape[axis] >= 0:
            return int(shape[axis])
    many = [s.name for s in proto.outputs.values() if s.duplicable]
    raise InvalidArgumentError(f"op {proto.type}: pass num_outputs, the number of tensors that {', '.join(many)} gets")


def _value(proto: OpProto, attrs: Mapping[str, Any], name: str) -> Any:
    known = proto.attrs.get(name)
    return attrs.get(name, None if known is None else known.default)


_WIDTH = 108


def sentence(text: str) -> str:
    """A text in one line that ends like a sentence."""
    line = " ".join(text.split())
    return line if not line or line[-1] in ".!?$" else f"{line}."


def indented(line: str) -> str:
    """A line of a section."""
    return f"    {line}"


def entry(text: str) -> list[str]:
    """Lines of an entry of a section, cut between words; textwrap takes longer than all the rest of a function."""
    lines, indent = [], "    "
    while len(text) > _WIDTH:
        cut = text.rfind(" ", 0, _WIDTH)
        if cut < 0:
            break
        lines.append(indent + text[:cut])
        text, indent = text[cut + 1 :], "        "
    return [*lines, indent + text]


def default(value: Any) -> str:
    """A default as a stub has it."""
    return f" = {value!r}" if value is None or isinstance(value, bool | int | str) else " = ..."


def stub_docstring(doc: str) -> str:
    """A docstring as a stub has it.

    Args:
        doc: The text.

    Returns:
        Its source, indented as the body of a function.
    """
    lines = doc.replace("\\", "\\\\").replace('"""', "'''").rstrip().splitlines() or [""]
    return "\n".join([f'    """{lines[0]}', *(f"    {line}".rstrip() for line in lines[1:]), '    """'])


_TYPES = {
    AttrType.INT: "int",
    AttrType.LONG: "int",
    AttrType.FLOAT: "float",
    AttrType.FLOAT64: "float",
    AttrType.STRING: "str",
    AttrType.BOOLEAN: "bool",
    AttrType.INTS: "Sequence[int]",
    AttrType.LONGS: "Sequence[int]",
    AttrType.FLOATS: "Sequence[float]",
    AttrType.FLOAT64S: "Sequence[float]",
    AttrType.STRINGS: "Sequence[str]",
    AttrType.BOOLEANS: "Sequence[bool]",
}
_POSITIONAL, _KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
_EMPTY: Any = inspect.Parameter.empty


class OpParameter(NamedTuple):
    """A parameter of a function that is made from an OpProto.

    Attributes:
        name: How Python spells it.
        doc: What it means.
        annotation: Its type, as source.
        default: Its default; inspect.Parameter.empty when every call has to give it.
        keyword: Whether it goes by keyword alone.
        slot: The input slot that it fills, if it is a tensor or several.
        attr: The attribute that it gives, if it is one.
    """

    name: str
    doc: str
    annotation: str
    default: Any = _EMPTY
    keyword: bool = False
    slot: SlotProto | None = None
    attr: AttrProto | None = None


class OpSignature:
    """How Python calls an op.

    Attributes:
        proto: The op's OpProto.
        name: The name of the function.
        parameters: Its parameters, in order.
        result: The type of what it returns, as source.
    """

    def __init__(
        self, proto: OpProto, name: str, parameters: Iterable[OpParameter], *, tensor: str, summary: str, raises: str
    ) -> None:
        """Describe a function.

        Args:
            proto: The op's OpProto.
            name: The name of the function.
            parameters: Its parameters, in order.
            tensor: The type of tensors, as source.
            summary: What a call does.
            raises: Lines of the section Raises.
        """
        self.proto, self.name, self.parameters = proto, name, tuple(parameters)
        self._summary, self._raises = summary, raises
        self.returned = [s for s in proto.outputs.values() if not (s.intermediate or s.dispensable)]
        one = len(self.returned) == 1 and not any(s.dispensable and not s.intermediate for s in proto.outputs.values())
        self.result = "Any" if not one else f"list[{tensor}]" if self.returned[0].duplicable else tensor

    @property
    def slots(self) -> dict[str, SlotProto]:
        """Input slots by how their parameters are spelled."""
        return {p.name: p.slot for p in self.parameters if p.slot is not None}

    @property
    def attrs(self) -> dict[str, AttrProto]:
        """Attributes by how their parameters are spelled."""
        return {p.name: p.attr for p in self.parameters if p.attr is not None}

    def inspected(self) -> inspect.Signature:
        """What `inspect.signature` and `help` say of the function.

        Returns:
            The signature, with types as source.
        """
        return inspect.Signature(
            [
                inspect.Parameter(
                    p.name, _KEYWORD if p.keyword else _POSITIONAL, default=p.default, annotation=p.annotation
                )
                for p in self.parameters
            ],
            return_annotation=self.result,
        )

    def __str__(self) -> str:
        """The call in short, for messages: names and defaults, without types."""
        return f"{self.name}({', '.join(_listed(self.parameters, lambda p: p.name, '={!r}'.format))})"

    def documentation(self) -> str:
        """The function's docstring, in Google's style.

        Returns:
            What the op computes, and the sections Args, Returns and Raises.
        """
        lines = [self.proto.doc.strip(), "", self._summary]
        if self.parameters:
            lines += ["", "Args:", *(line for p in self.parameters for line in entry(f"{p.name}: {p.doc}"))]
        lines += ["", "Returns:", *self._returns(), "", "Raises:", *map(indented, self._raises.splitlines())]
        return "\n".join(lines) + "\n"

    def _returns(self) -> Iterator[str]:
        if not self.returned:
            yield indented("Nothing.")
        elif len(self.returned) == 1:
            doc = sentence(self.returned[0].doc)
            yield from entry(f"A list of tensors. {doc}" if self.returned[0].duplicable else doc)
        else:
            yield indented("A tuple:")
            for s in self.returned:
                many = "A list of tensors. " if s.duplicable else ""
                yield from map(indented, entry(f"{snake_case(s.name)}: {many}{sentence(s.doc)}"))

    def stub(self, method: bool = False) -> str:
        """The function as a type stub has it.

        Args:
            method: Whether it is written as a method of its first argument.

        Returns:
            Source of a definition without a body, with the docstring.
        """
        texts = _listed(self.parameters[method:], lambda p: f"{p.name}: {p.annotation}", default)
        parameters = ", ".join(["self", *texts] if method else texts)
        return f"def {self.name}({parameters}) -> {self.result}:\n" + stub_docstring(self.documentation())

    def describe(self, function: Any, module: str) -> None:
        """Make a function look like one that was written by hand.

        Args:
            function: It gets a name, a docstring and a signature, and keeps this description as `op_signature`.
            module: Where users find it.
        """
        function.__name__ = function.__qualname__ = self.name
        function.__module__ = module
        function.__doc__ = self.documentation()
        function.__signature__ = self.inspected()
        function.op_signature = self


def _listed(
    parameters: Iterable[OpParameter], name: Callable[[OpParameter], str], default_text: Callable[[Any], str]
) -> list[str]:
    """Parameters as source, with a star before those by keyword."""
    texts: list[str] = []
    for p in parameters:
        if p.keyword and "*" not in texts:
            texts.append("*")
        texts.append(name(p) + ("" if p.default is _EMPTY else default_text(p.default)))
    return texts


_FUNCTION_RAISES = """\
InvalidArgumentError: An input is missing or holds no tensor, or shapes or dtypes do not fit.
AttributeValueError: An attribute has another type or a value out of bounds.
KernelNotFoundError: No installed pack has a kernel for these dtypes at this place."""
_LAYER_RAISES = """\
TypeError: An argument is missing, or there is none of that name.
InvalidArgumentError: An input is no Variable, or shapes do not fit.
AttributeValueError: An attribute has another type or a value out of bounds."""


def function_signature(proto: OpProto) -> OpSignature:
    """How a function of oprack.functional is called: inputs in slot order, those that may be absent last; attributes
    as keywords.

    Args:
        proto: The op's OpProto.

    Returns:
        The description of the function.
    """
    names = input_names(proto)
    inputs = [_input(slot, names[slot.name], "Tensor") for slot in proto.inputs.values()]
    parameters = [*(p for p in inputs if p.default is _EMPTY), *(p for p in inputs if p.default is None)]
    parameters += [_attribute(attr, name, keyword=True) for name, attr in shown_attrs(proto).items()]
    asked = [snake_case(s.name) for s in proto.outputs.values() if s.duplicable or s.dispensable]
    if asked:
        doc = (
            f"How many tensors a result gets, as {{name: number}}, for {', '.join(asked)}; an int where one result is "
            "a list. None: as inputs and attributes say; results that may be absent are left out."
        )
        parameters.append(OpParameter("num_outputs", doc, "int | Mapping[str, int] | None", None, keyword=True))
    return OpSignature(
        proto,
        param_name(proto.type),
        parameters,
        tensor="Tensor",
        summary=f"Runs the op {proto.type}, or appends it to a program when it is called with Variables.",
        raises=_FUNCTION_RAISES,
    )


def layer_signature(proto: OpProto, name: str | None = None, arguments: Mapping[str, str] | None = None) -> OpSignature:
    """How a layer that appends one op is called: inputs, attributes, `act` and `name`; what every call has to give
    comes first.

    Args:
        proto: The op's OpProto.
        name: The name of the function; default: the op's type.
        arguments: Slot or attribute -> how its argument is spelled.

    Returns:
        The description of the function.
    """
    spelled = {**input_names(proto), **(arguments or {})}
    inputs = [_input(slot, spelled[slot.name], "Variable") for slot in proto.inputs.values() if not slot.extra]
    attrs = [_attribute(a, spelled.get(a.name, shown)) for shown, a in shown_attrs(proto).items()]
    parameters = [p for p in (*inputs, *attrs) if p.default is _EMPTY]
    if any(s.duplicable for s in proto.outputs.values()):
        doc = "How many Variables a result gets that is a list. None: as many as inputs and attributes say."
        parameters.append(OpParameter("num_outputs", doc, "int | None", None))
    parameters += [p for p in (*inputs, *attrs) if p.default is not _EMPTY]
    taken = {p.name for p in parameters}
    for extra, doc, annotation in (
        ("act", "The op that the result goes through, such as 'relu', or {'type': op, attribute: value}.", _ACT),
        ("name", "Prefix of the names of what the layer makes.", "str | None"),
    ):
        if extra not in taken:
            parameters.append(OpParameter(extra, doc, annotation, None))
    return OpSignature(
        proto,
        name or param_name(proto.type),
        parameters,
        tensor="Variable",
        summary=f"Appends the op {proto.type} to the current program.",
        raises=_LAYER_RAISES,
    )


_ACT = "str | Mapping[str, Any] | None"


def _input(slot: SlotProto, name: str, tensor: str) -> OpParameter:
    annotation = f"Sequence[{tensor}]" if slot.duplicable else tensor
    doc = sentence(slot.doc)
    doc = f"A list of tensors. {doc}" if slot.duplicable else doc
    if slot.dispensable:
        return OpParameter(name, f"{doc} May be None.", f"{annotation} | None", None, slot=slot)
    return OpParameter(name, doc, annotation, slot=slot)


def _attribute(attr: AttrProto, name: str, *, keyword: bool = False) -> OpParameter:
    annotation = _TYPES.get(attr.type, "Any")
    if keyword:  # functions take names of dtypes, and tensors where a program may name variables
        annotation = f"{annotation} | str" if attr.type is AttrType.INT and attr.name.endswith("dtype") else annotation
        annotation = f"{annotation} | Tensor" if attr.support_tensor else annotation
    doc = " ".join([sentence(attr.doc), *(f"Expected: {text}." for text in attr.checks)])
    value = _EMPTY if attr.required else attr.default
    if value is None and annotation != "Any":
        annotation = f"{annotation} | None"
    return OpParameter(name, doc, annotation, value, keyword, attr=attr)
