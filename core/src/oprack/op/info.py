"""OpInfo: everything known about an op type but its kernels, put together from a definition class or from facets."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from oprack.errors import AlreadyExistsError, DefinitionError, NotDifferentiableError
from oprack.op.attrs import Attr, OpAttrChecker
from oprack.op.definition import OpDef
from oprack.op.facets import FACETS, CreatorFacet, FacetKind, GradOpMaker, OpMaker, facet_kind, facet_names
from oprack.op.infer import InferVarTypeContext, infer_like_first_input
from oprack.op.proto import Input, OpProto, Output, SlotProto, slot_name
from oprack.op.version import OpVersion
from oprack.records import dataclass


@dataclass
class OpInfo:
    """The facets of one op type. `owners` says which distribution set each of them."""

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
            raise AlreadyExistsError(
                f"op {self.type}: facet {name!r} is set by {owner}, but {self.owners[name]} already set it; "
                "each facet may be set once, so remove one of the two or leave a pack out: "
                f"OPRACK_BLOCK={owner} or OPRACK_BLOCK={self.owners[name]}"
            )
        self.owners[name] = owner
        setattr(self, name, value)

    def run_infer_var_type(self, ctx: InferVarTypeContext) -> None:
        """The op's own rule, or the default: outputs like the first input.

        Args:
            ctx: The context of the op.
        """
        if self.infer_var_type is not None:
            self.infer_var_type(ctx)
        else:
            infer_like_first_input(ctx, self.proto)

    def require_grad_op_maker(self) -> GradOpMaker:
        """The grad maker of an op that has to have one.

        Returns:
            The maker.

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


def build_op_info(definition: type[OpDef], owner: str) -> OpInfo:
    """OpInfo of a definition class.

    Args:
        definition: The class.
        owner: The distribution that brings it.

    Returns:
        The OpInfo.

    Raises:
        DefinitionError: When an inplace pair or a no_need_buffer_vars entry names no slot.
    """
    info = OpInfo(definition.op_type)
    proto, checker = _proto_facets(definition.members(), definition.op_type, definition.__doc__)
    info.set_facet("proto", proto, owner)
    info.set_facet("checker", checker, owner)
    for kind in FACETS:
        value = _member(definition, kind)
        if value:
            info.set_facet(kind.name, value, owner)
    _check_slots(info)
    return info


def _member(definition: type[OpDef], kind: FacetKind) -> Any:
    """What a definition class gives for a facet, or something false."""
    return definition.grad_op_maker() if kind.name == GradOpMaker.facet else getattr(definition, kind.member, None)


def _check_slots(info: OpInfo) -> None:
    for kind in FACETS:
        kind.check(info.type, info.proto, getattr(info, kind.name))


def _rule_of(cls: type, name: str, info: OpInfo) -> Callable[..., Any]:
    """A method of an operator class as a facet, which is also called where no operator is: while a program is built."""
    bare: Any = object.__new__(cls)
    bare.type, bare.info = info.type, info
    rule: Callable[..., Any] = getattr(bare, name)
    return rule


def set_facets(info: OpInfo, facets: Sequence[Any], owner: str) -> None:
    """Set facets, which are classes or instances in any order; each is recognised by its base class.

    Raises:
        DefinitionError: For something that is no facet.
        AlreadyExistsError: For one that is set already.
    """
    for facet in facets:
        kind = facet_kind(facet)
        if kind is None:
            raise DefinitionError(
                f"register_operator({info.type!r}): {facet!r} is no facet; expected classes derived from "
                f"{facet_names()}, or from OperatorBase or OperatorWithKernel"
            )
        cls = facet if isinstance(facet, type) else type(facet)
        if kind.base is OpMaker:
            members = [
                (d.name or slot_name(n, grads=info.type.endswith("_grad")), d)
                for n, d in vars(cls).items()
                if isinstance(d, Input | Output | Attr)
            ]
            proto, checker = _proto_facets(members, info.type, cls.__doc__)
            info.set_facet("proto", proto, owner)
            info.set_facet("checker", checker, owner)
        elif kind.base is CreatorFacet:
            info.set_facet("creator", facet, owner)
            for name in CreatorFacet.RULES:
                if callable(getattr(cls, name, None)):
                    info.set_facet(name, _rule_of(cls, name, info), owner)
        else:
            info.set_facet(kind.name, kind.value(facet() if isinstance(facet, type) else facet), owner)
    if "proto" in info.owners:
        _check_slots(info)
