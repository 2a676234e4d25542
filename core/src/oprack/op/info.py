"""OpInfo: everything known about an op but its kernels; and whether an OpDesc conforms to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from oprack.desc.attr_values import RULES, convert_or_none
from oprack.errors import AlreadyExistsError, DefinitionError, NotDifferentiableError, OprackError, did_you_mean
from oprack.op.attrs import COMMON_ATTRS, Attr, OpAttrChecker
from oprack.op.definition.op_def import OpDef
from oprack.op.facets import FACETS, CreatorFacet, FacetKind, GradOpMaker, OpFacets, OpMaker, require_facet
from oprack.op.grad import FunctionGradOpMaker
from oprack.op.infer import InferVarTypeContext, infer_like_first_input
from oprack.op.proto import AttrProto, Input, OpProto, OpVersion, Output, SlotProto, slot_name
from oprack.python.records import dataclass
from oprack.types import EMPTY_VAR


@dataclass
class OpInfo:
    """The facets of one op type.

    Attributes:
        type: The op type.
        proto: Its signature and documentation.
        checker: Fills in and checks its attributes.
        creator: Makes its operator, where that is not one that chooses a kernel.
        infer_shape: Its rule of shapes.
        infer_var_type: Its rule of kinds of variables and dtypes.
        grad_op_maker: Makes its gradient ops.
        inplace: Input slot -> output slot that may have its memory.
        no_need_buffer_vars: Input slots of which shapes alone are read.
        expected_kernel_type: Says in which dtype and at which place it computes.
        kernel_type_for_var: Says what an input has to be converted to.
        identity: Says whether an op leaves its input as it is.
        sbp: Its rule of splitting among ranks.
        versions: Its history.
        owners: Facet -> the distribution that set it.
    """

    type: str
    proto: OpProto = field(default_factory=lambda: OpProto(""))
    checker: OpAttrChecker | None = None
    creator: Callable[..., Any] | None = None
    infer_shape: Callable[[Any], None] | None = None
    infer_var_type: Callable[[Any], None] | None = None
    grad_op_maker: GradOpMaker | None = None
    inplace: Mapping[str, str] = field(default_factory=dict)
    no_need_buffer_vars: Sequence[str] = ()
    expected_kernel_type: Callable[[Any], Any] | None = None
    kernel_type_for_var: Callable[..., Any] | None = None
    identity: Callable[[Any], bool] | None = None
    sbp: Callable[[Any], Any] | None = None
    versions: OpVersion | None = None
    owners: dict[str, str] = field(default_factory=dict)

    @property
    def pack(self) -> str:
        """The distribution that brings the op."""
        return self.owners.get("proto", "")

    @property
    def version(self) -> int:
        """The number of the op's latest version."""
        return self.versions.version if self.versions else 0

    def set_facet(self, name: str, value: Any, owner: str) -> None:
        """Set one facet.

        Args:
            name: The facet.
            value: What it holds.
            owner: The distribution that sets it.

        Raises:
            AlreadyExistsError: It was set before; the message names both owners.
        """
        if name in self.owners:
            here, other = "this process", self.owners[name]
            blockable = [f"OPRACK_BLOCK={one}" for one in dict.fromkeys((owner, other)) if one != here]
            raise AlreadyExistsError(
                f"op {self.type}: facet {name!r} is set by {owner}, but {other} already set it; each facet may be set "
                "once, so remove one of the two"
                + (f" or leave a pack out: {' or '.join(blockable)}" if blockable and owner != other else "")
            )
        self.owners[name] = owner
        setattr(self, name, value)

    def run_infer_var_type(self, ctx: InferVarTypeContext) -> None:
        """The op's own rule, or the default: outputs like the first input."""
        if self.infer_var_type is not None:
            self.infer_var_type(ctx)
        else:
            infer_like_first_input(ctx, self.proto)

    def require_grad_op_maker(self) -> GradOpMaker:
        """The grad maker of an op that has to have one.

        Raises:
            NotDifferentiableError: The op has none.
        """
        if self.grad_op_maker is None:
            raise NotDifferentiableError(
                f"op {self.type} (pack {self.pack}) has no gradient; give it a make_grad, declare `make_grad = "
                "empty_grad` if nothing should flow back through it, or keep it off the path to the loss"
            )
        return self.grad_op_maker


def _proto_facets(
    members: Iterable[tuple[str, Input | Output | Attr]], op_type: str, doc: str | None
) -> tuple[OpProto, OpAttrChecker]:
    """Signature and attribute checks of the members that a definition class or an OpMaker declares."""
    proto = OpProto(op_type, doc=inspect.cleandoc(doc or ""))
    checks = []
    for name, d in members:
        if isinstance(d, Attr):
            proto.attrs[name] = d.proto(name)
            checks.append((proto.attrs[name], d.checks))
        else:
            (proto.inputs if isinstance(d, Input) else proto.outputs)[name] = SlotProto.declared(name, d)
    return proto, OpAttrChecker(op_type, checks)


def build_op_info(definition: type[OpDef] | OpFacets, owner: str) -> OpInfo:
    """OpInfo of a definition class, or of facets that define an op.

    Args:
        definition: The class, or the facets.
        owner: The distribution that brings it.

    Returns:
        The OpInfo.

    Raises:
        DefinitionError: When an inplace pair or a no_need_buffer_vars entry names no slot.
    """
    info = OpInfo(definition.op_type)
    if isinstance(definition, OpFacets):
        set_facets(info, definition.facets, owner)
        return info
    proto, checker = _proto_facets(definition.members(), definition.op_type, definition.__doc__)
    info.set_facet("proto", proto, owner)
    info.set_facet("checker", checker, owner)
    for kind in FACETS:
        value = _member(definition, kind)
        if value:
            info.set_facet(kind.name, value, owner)
    check_slots(info)
    return info


def _member(definition: type[OpDef], kind: FacetKind) -> Any:
    """What a definition class gives for a facet, or something false."""
    return definition.grad_op_maker() if kind.name == GradOpMaker.facet else getattr(definition, kind.member, None)


def check_slots(info: OpInfo) -> None:
    """Refuse (DefinitionError) facets that name what the op does not have."""
    for kind in FACETS:
        if kind.check is not None:
            kind.check(info.type, info.proto, getattr(info, kind.name))


def _rule_of(cls: type, name: str, info: OpInfo) -> Callable[..., Any]:
    """A method of an operator class as a facet, which is also called where no operator is: while a program is built."""
    bare: Any = object.__new__(cls)
    bare.type, bare.info = info.type, info
    rule: Callable[..., Any] = getattr(bare, name)
    return rule


def _operator_facets(cls: type, info: OpInfo) -> Iterator[tuple[FacetKind, Any]]:
    """The facets that an operator class has as members."""
    for kind in FACETS:
        found = inspect.getattr_static(cls, kind.member, None) if kind.member else None
        if found is None:
            continue
        if not kind.is_rule:
            yield kind, found
        elif isinstance(found, GradOpMaker) or (isinstance(found, type) and issubclass(found, GradOpMaker)):
            yield kind, found() if isinstance(found, type) else found
        else:
            rule = _rule_of(cls, kind.member, info)
            _require_arguments(rule, kind, f"op {info.type}: {cls.__qualname__}.{kind.member}")
            yield kind, FunctionGradOpMaker(rule) if kind.name == GradOpMaker.facet else rule


def _require_arguments(rule: Any, kind: FacetKind, where: str) -> None:
    """Refuse a rule that can't be called with what its kind of facet is called with."""
    wanted = list(inspect.signature(kind.base.__call__).parameters)
    try:
        inspect.signature(rule).bind(*wanted[1:])
    except (TypeError, ValueError) as error:
        raise DefinitionError(
            f"{where} can't be called with ({', '.join(wanted[1:])}): {error}; write def {kind.member}"
            f"({', '.join(wanted)})"
        ) from None


def _maker_members(cls: type[OpMaker], op_type: str) -> Iterator[tuple[str, Input | Output | Attr]]:
    """The slots and attributes of an OpMaker, those of its base classes first."""
    found: dict[str, Input | Output | Attr] = {}
    for base in reversed(cls.__mro__[: cls.__mro__.index(OpMaker)]):
        for name, value in vars(base).items():
            if isinstance(value, Input | Output | Attr):
                found[value.name or slot_name(name, grads=op_type.endswith("_grad"))] = value
            elif not name.startswith("_"):
                raise DefinitionError(
                    f"op {op_type}: {name} = {value!r} of {base.__qualname__} is no slot and no attribute; expected "
                    'members such as X = Input("...") and axis = Attr(1, "..."); rules are facets of their own'
                )
    yield from found.items()


def facet_values(info: OpInfo, facets: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """What facets hold, which are classes or instances in any order; each is recognised by its base class.

    Args:
        info: The OpInfo for which they are.
        facets: The facets.

    Yields:
        (name of the facet, value) of each; an operator class and an OpMaker bring several.

    Raises:
        DefinitionError: For something that is no facet.
    """
    for facet in facets:
        kind = require_facet(facet, f"register_operator({info.type!r})")
        cls = facet if isinstance(facet, type) else type(facet)
        if issubclass(cls, OpMaker):
            proto, checker = _proto_facets(_maker_members(cls, info.type), info.type, cls.__doc__)
            yield "proto", proto
            yield "checker", checker
        elif kind.base is CreatorFacet:
            yield "creator", facet
            for one, value in _operator_facets(cls, info):
                yield one.name, value
        else:
            yield kind.name, kind.value(facet() if isinstance(facet, type) else facet)


def set_facets(info: OpInfo, facets: Sequence[Any], owner: str) -> None:
    """Set facets that one distribution brings.

    Args:
        info: The OpInfo that gets them.
        facets: Classes or instances; see `facet_values`.
        owner: The distribution.

    Raises:
        DefinitionError: For something that is no facet.
        AlreadyExistsError: For one that is set already.
    """
    for name, value in facet_values(info, facets):
        info.set_facet(name, value, owner)
    if "proto" in info.owners:
        check_slots(info)


Slots = Mapping[str, Sequence[str]]


def misfit(
    info: OpInfo,
    inputs: Slots,
    outputs: Slots,
    attrs: Mapping[str, Any],
    *,
    tensor_attrs: Collection[str] = (),
    foreign_attrs: Collection[str] | None = None,
    runs_itself: bool = False,
    check_attrs: bool = True,
) -> str:
    """What is wrong with an op, as the end of a sentence that begins with the op; "" when it is as its OpProto says.

    Args:
        inputs, outputs: Names of variables by slot.
        tensor_attrs: Attributes that name variables.
        foreign_attrs: Attributes that the OpProto does not have and the op may; None = any, as in programs of other
            versions.
        runs_itself: The op has no kernel, so it says itself which inputs it needs.
        check_attrs: Whether to check values of attributes against the OpProto; False where the op's rules do so.
    """
    proto = info.proto
    why = _slots("input", inputs, proto.inputs) or _slots("output", outputs, proto.outputs)
    if not why and not runs_itself:
        why = _missing_input(inputs, proto.inputs)
    if not why and foreign_attrs is not None:
        why = _foreign_attr(attrs, proto.attrs, foreign_attrs)
    why = why or _wrong_common_attr(attrs)
    if not why and check_attrs and info.checker is not None:
        try:
            info.checker.check(dict(attrs), tensor_attrs)
        except OprackError as error:
            return f"has a wrong attribute: {error}"
    return why


def _missing_input(inputs: Slots, declared: Mapping[str, SlotProto]) -> str:
    for slot, proto in declared.items():
        if not proto.dispensable and not any([n != EMPTY_VAR for n in inputs.get(slot, ())]):
            return f"lacks input {slot}, which the op needs"
    return ""


def _foreign_attr(attrs: Mapping[str, Any], declared: Mapping[str, AttrProto], foreign: Collection[str]) -> str:
    for name in attrs:
        if name not in declared and name not in COMMON_ATTRS and name not in foreign:
            return f"has attribute {name}{did_you_mean(name, declared)}; the op has {', '.join(declared) or 'none'}"
    return ""


def _wrong_common_attr(attrs: Mapping[str, Any]) -> str:
    for name, (kind, _) in COMMON_ATTRS.items():
        if name in attrs and convert_or_none(attrs[name], kind) is None:
            return f"has attribute {name} = {attrs[name]!r}; expected {RULES[kind].words}"
    return ""


def _slots(what: str, given: Slots, declared: Mapping[str, SlotProto]) -> str:
    for slot, names in given.items():
        if names and slot not in declared:
            return f"has {what} {slot}{did_you_mean(slot, declared)}; the op has {', '.join(declared) or 'none'}"
        if len(names) > 1 and not declared[slot].duplicable:
            return f"has {len(names)} variables in {what} {slot}; expected one"
    return ""
