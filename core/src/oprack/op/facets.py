"""The facets of an OpInfo: a base class for each, by which `register_operator(type, *facets)` tells them apart, and the
table FACETS, which drives all other code that handles facets.

To add a facet, add a base class, a row of the table and, for the type checker, a field of OpInfo and a member of OpDef.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from oprack.errors import DefinitionError, did_you_mean
from oprack.op.proto import OpVersion
from oprack.python.records import dataclass

if TYPE_CHECKING:
    from oprack.op.grad import ForwardOp, GradOp
    from oprack.op.infer import InferShapeContext, InferVarTypeContext
    from oprack.op.proto import OpProto


class Facet:
    """Base of all facets; `facet` names the field of OpInfo that holds it."""

    facet: ClassVar[str] = ""


class OpMaker(Facet):
    """Slots and attributes, declared as class attributes by Input, Output and Attr; the docstring documents the op."""

    facet = "proto"


class InferShapeFacet(Facet):
    """Shape and LoD of the outputs, at build time (dims may be -1) and at run time."""

    facet = "infer_shape"

    def __call__(self, ctx: InferShapeContext) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, ctx)")


class InferVarTypeFacet(Facet):
    """Container and dtype of the outputs, at build time."""

    facet = "infer_var_type"

    def __call__(self, ctx: InferVarTypeContext) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, ctx)")


class GradOpMaker(Facet):
    """Returns the gradient ops of an op; one definition serves programs and eager calls."""

    facet = "grad_op_maker"

    def __call__(self, fwd: ForwardOp) -> GradOp | Sequence[GradOp]:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, fwd)")


class InplaceFacet(Facet):
    """Which input's buffer an output may reuse: {"X": "Out"}."""

    facet = "inplace"
    pairs: ClassVar[Mapping[str, str]] = {}


class NoNeedBufferVarsFacet(Facet):
    """Input slots of which only shape and LoD are read."""

    facet = "no_need_buffer_vars"
    slots: ClassVar[Sequence[str]] = ()


class ExpectedKernelTypeFacet(Facet):
    """The OpKernelType that fits the inputs and attributes; the default takes the dtype that all inputs share."""

    facet = "expected_kernel_type"

    def __call__(self, ctx: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, ctx)")


class KernelTypeForVarFacet(Facet):
    """The OpKernelType into which one input is transformed; the default keeps its dtype."""

    facet = "kernel_type_for_var"

    def __call__(self, slot: str, actual: Any, expected: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, slot, actual, expected)")


class IdentityFacet(Facet):
    """Whether this use of the op returns its first input as its first output; if so, passes remove it."""

    facet = "identity"

    def __call__(self, ctx: Any) -> bool:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, ctx)")


class SbpFacet(Facet):
    """How an op may be computed on parts of its tensors, on several ranks: a rule of an SbpContext.

    It returns a list of `oprack.op.sbp.Signature`, which `oprack.op.sbp.factors` makes of names of dims. That every
    rank has all of every tensor is always allowed. Gradient ops need no rule. See docs/design.md, section 8.
    """

    facet = "sbp"

    def __call__(self, ctx: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, ctx)")


class CreatorFacet(Facet):
    """Base of operator classes; `oprack.runtime.OperatorBase`, whose classes run themselves, derives from it.

    A class may have every facet that a definition class may have, with `self` as the first parameter of the rules.

    Attributes:
        runs_itself: Whether the op runs itself over a Scope; False for ops that run a kernel (OperatorWithKernel).
    """

    facet = "creator"
    runs_itself: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in vars(cls) if cls.__module__.partition(".")[0] != "oprack" else ():
            # most names are of something else, which is cheaper to see than what they are like
            if name in MEMBERS or not _snake(name).startswith(_STARTS):
                continue
            if near := near_member(name, MEMBERS, cutoff=0.85):
                raise DefinitionError(
                    f"operator class {cls.__qualname__}: {name} is no rule of an op{near}; write the name as it stands "
                    "there, or give a helper another one"
                )


@dataclass(frozen=True)
class FacetKind:
    """A row of FACETS.

    Attributes:
        name: The field of OpInfo.
        base: The class from which a facet passed to `register_operator` derives.
        member: The member of a definition class that provides it; "" when none does.
        is_rule: Whether that member is a function of a context rather than a value.
        own: The member in which a class derived from `base` says what it brings; "" where that is not one member.
        value: Converts an instance of `base` to what OpInfo holds.
        check: Called as check(op type, proto, value); raises DefinitionError when the value does not fit the slots.
            None: any value does.
    """

    name: str
    base: type[Any]
    member: str = ""
    is_rule: bool = False
    own: str = ""
    value: Callable[[Any], Any] = lambda facet: facet
    check: Callable[[str, OpProto, Any], None] | None = None


def _check_inplace(op_type: str, proto: OpProto, pairs: Mapping[str, str]) -> None:
    if not isinstance(pairs, Mapping):
        raise DefinitionError(f"op {op_type}: inplace = {pairs!r}; expected a dict of slots such as {{'X': 'Out'}}")
    for source, target in pairs.items():
        if source not in proto.inputs or target not in proto.outputs:
            raise DefinitionError(
                f"op {op_type}: inplace pairs {source!r} with {target!r}; expected an input and an output slot"
            )


def _check_no_need_buffer_vars(op_type: str, proto: OpProto, slots: Sequence[str]) -> None:
    if isinstance(slots, str) or not isinstance(slots, Iterable):
        raise DefinitionError(f"op {op_type}: no_need_buffer_vars = {slots!r}; expected names of slots such as ('X',)")
    for slot in slots:
        if slot not in proto.inputs:
            raise DefinitionError(
                f"op {op_type}: no_need_buffer_vars has {slot!r}; expected one of {', '.join(proto.inputs)}"
            )


def _check_versions(op_type: str, proto: OpProto, versions: OpVersion | None) -> None:
    if versions is None:
        return
    if not isinstance(versions, OpVersion):
        raise DefinitionError(f"op {op_type}: versions = {versions!r}; expected OpVersion({op_type!r}).checkpoint(...)")
    if versions.op_type != op_type:
        raise DefinitionError(
            f"op {op_type}: its versions are those of op {versions.op_type!r}; write OpVersion({op_type!r})"
        )


def _rule(base: type[Facet], member: str = "") -> FacetKind:
    return FacetKind(base.facet, base, member or base.facet, is_rule=True, own="__call__")


FACETS = (
    FacetKind(OpMaker.facet, OpMaker),
    FacetKind(CreatorFacet.facet, CreatorFacet),
    _rule(InferShapeFacet),
    _rule(InferVarTypeFacet),
    _rule(GradOpMaker, "make_grad"),
    _rule(ExpectedKernelTypeFacet),
    _rule(KernelTypeForVarFacet),
    _rule(IdentityFacet),
    _rule(SbpFacet),
    FacetKind(InplaceFacet.facet, InplaceFacet, "inplace", own="pairs", value=lambda f: f.pairs, check=_check_inplace),
    FacetKind(
        NoNeedBufferVarsFacet.facet,
        NoNeedBufferVarsFacet,
        "no_need_buffer_vars",
        own="slots",
        value=lambda f: f.slots,
        check=_check_no_need_buffer_vars,
    ),
    FacetKind("versions", OpVersion, "versions", check=_check_versions),
)
"""Every facet, in the order in which errors list them."""

MEMBERS = tuple(kind.member for kind in FACETS if kind.member)
"""The facets that a definition class, or an operator class, has as members."""


def near_member(name: str, members: Iterable[str], cutoff: float = 0.6) -> str:
    """` (did you mean infer_shape?)` for a name that is meant to be one of the members; Fluid's spellings count.

    Args:
        name: The name, such as "InferShape" or "GetExpectedKernelType".
        members: The names that are known.
        cutoff: How alike names have to be, from 0 to 1.

    Returns:
        Text for a message; "" when nothing is alike, or the name is private.
    """
    if name.startswith("_"):
        return ""
    snake, members = _snake(name), list(members)
    return did_you_mean(snake, [snake] if snake in members else members, cutoff)


def _snake(name: str) -> str:
    """A name of Fluid's as it would be here: GetExpectedKernelType is expected_kernel_type."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return _FLUID.get(snake, snake).removeprefix("get_")


_STARTS = tuple(member[:4] for member in MEMBERS)
_FLUID = {"apply": "make_grad", "grad_op_maker": "make_grad", "get_kernel_type_for_tensor": "kernel_type_for_var"}


def facet_kind(facet: Any) -> FacetKind | None:
    """The row of a facet, given as a class or an instance; None for anything that is not a facet."""
    cls = facet if isinstance(facet, type) else type(facet)
    return next((kind for kind in FACETS if issubclass(cls, kind.base)), None)


def require_facet(facet: Any, where: str) -> FacetKind:
    """The row of a facet that says what it brings.

    Args:
        facet: A class, or an instance of one.
        where: What was called, for the message.

    Returns:
        The row of FACETS.

    Raises:
        DefinitionError: It is no facet, or its class does not say what its base class asks for.
    """
    kind = facet_kind(facet)
    if kind is None:
        raise DefinitionError(
            f"{where}: {facet!r} is no facet; expected classes derived from {facet_names()}, or from OperatorBase or "
            "OperatorWithKernel"
        )
    cls = facet if isinstance(facet, type) else type(facet)
    if kind.base is OpVersion and facet is cls:
        raise DefinitionError(f'{where} got the class OpVersion; expected OpVersion("op").checkpoint(...)')
    if kind.own and (facet is cls or kind.own not in vars(facet)):
        if getattr(cls, kind.own) is getattr(kind.base, kind.own):
            member = f"{kind.own}(self, ...)" if kind.is_rule else kind.own
            written = ", ".join(name for name in vars(cls) if not name.startswith("_") and cls is not kind.base)
            raise DefinitionError(
                f"{where} got {cls.__qualname__}, which does not say its {kind.name}; expected a class that has "
                f"{member}" + (f", got {written}" if written else "")
            )
    return kind


def facet_names() -> str:
    """The base classes that `register_operator` accepts, for error messages."""
    return ", ".join(kind.base.__name__ for kind in FACETS)


class OpFacets:
    """The facets of one op, declared by a module: `conv = OpFacets("conv", ConvOp, ConvOpMaker, ConvGradOpMaker)`.

    It stands where Fluid has REGISTER_OPERATOR(conv, ...). In a module below `<package>.ops` it is found by `oprack
    manifest`, and imported when the op is first used. With an OpMaker among them the facets define the op; without one
    they are added to an op of another pack.

    Args:
        op_type: The op.
        facets: Classes derived from the facet bases of oprack.op, or instances of them, in any order.

    Raises:
        DefinitionError: No facet was passed, or something that is not a facet.
    """

    def __init__(self, op_type: str, *facets: Any) -> None:
        where = f"OpFacets({op_type!r}, ...)"
        if not isinstance(op_type, str) or not op_type.isidentifier() or not facets:
            raise DefinitionError(f"{where}: expected an op type of letters, digits and '_', and at least one facet")
        self.op_type, self.facets = op_type, facets
        self.kinds = tuple(require_facet(facet, where) for facet in facets)
        self.__module__ = sys._getframe(1).f_globals.get("__name__", "")

    @property
    def defines(self) -> bool:
        """Whether the facets define the op, by an OpMaker."""
        return any(kind.base is OpMaker for kind in self.kinds)

    def __repr__(self) -> str:
        return f"OpFacets({self.op_type!r}, {', '.join(getattr(f, '__name__', repr(f)) for f in self.facets)})"
