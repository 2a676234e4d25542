"""The facets of an OpInfo as base classes, so that `register_operator(type, *facets)` can tell them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from oprack.op.grad import ForwardOp, GradOp
    from oprack.op.infer import InferShapeContext, InferVarTypeContext


class Facet:
    """One of the things an OpInfo holds; `name` is its field there."""

    facet: ClassVar[str] = ""


class OpMaker(Facet):
    """Slots and attributes, as class attributes made by Input, Output and Attr; the docstring documents the op."""

    facet = "proto"


class InferShapeFacet(Facet):
    """Shape and LoD of the outputs, at build time (dims may be -1) and at run time."""

    facet = "infer_shape"

    def __call__(self, ctx: InferShapeContext) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, ctx)")


class InferVarTypeFacet(Facet):
    """Kind and dtype of the outputs, at build time."""

    facet = "infer_var_type"

    def __call__(self, ctx: InferVarTypeContext) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, ctx)")


class GradOpMaker(Facet):
    """The gradient ops of an op, from one definition for programs and for eager calls."""

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
    """Whether the op, as it stands, gives back its first input as its first output; passes remove it then."""

    facet = "identity"

    def __call__(self, ctx: Any) -> bool:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, ctx)")


class SbpFacet(Facet):
    """How an op's tensors may be split over devices: a list of {slot: "split(0)", "broadcast" or "partial_sum"}."""

    facet = "sbp"

    def __call__(self, ctx: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __call__(self, ctx)")


class CreatorFacet(Facet):
    """Base of operator classes; `oprack.runtime.OperatorBase`, whose classes run themselves, derives from it.

    runs_itself: whether the op runs itself over a Scope; False for ops that run a kernel (OperatorWithKernel). Methods
    named in RULES are facets, too.
    """

    facet = "creator"
    runs_itself: ClassVar[bool] = True
    RULES: ClassVar[tuple[str, ...]] = ("infer_shape", "expected_kernel_type", "kernel_type_for_var")
