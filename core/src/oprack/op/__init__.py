"""What an op is, apart from its kernels: slots, attributes, shape and type rules, gradient, versions."""

from oprack.op.attrs import REQUIRED, Attr, OpAttrChecker
from oprack.op.definition.builder import OpBuilder, op
from oprack.op.definition.grad_op_def import GradOpDef
from oprack.op.definition.op_def import OpDef
from oprack.op.facets import (
    CreatorFacet,
    ExpectedKernelTypeFacet,
    GradOpMaker,
    IdentityFacet,
    InferShapeFacet,
    InferVarTypeFacet,
    InplaceFacet,
    KernelTypeForVarFacet,
    NoNeedBufferVarsFacet,
    OpFacets,
    OpMaker,
    SbpFacet,
)
from oprack.op.grad import DefaultGradOpMaker, ForwardOp, GradBlock, GradOp, SlotRef, empty_grad
from oprack.op.infer import (
    IdentityContext,
    InferShapeContext,
    InferVarTypeContext,
    KernelTypeContext,
    dtype_of,
    dtype_of_attr,
    normal_axis,
)
from oprack.op.info import OpInfo, build_op_info
from oprack.op.proto import AttrProto, Input, OpProto, OpVersion, Output, SlotProto, param_name, slot_name

__all__ = [
    "REQUIRED",
    "Attr",
    "AttrProto",
    "CreatorFacet",
    "DefaultGradOpMaker",
    "ExpectedKernelTypeFacet",
    "ForwardOp",
    "GradBlock",
    "GradOp",
    "GradOpDef",
    "GradOpMaker",
    "IdentityContext",
    "IdentityFacet",
    "InferShapeContext",
    "InferShapeFacet",
    "InferVarTypeContext",
    "InferVarTypeFacet",
    "InplaceFacet",
    "Input",
    "KernelTypeContext",
    "KernelTypeForVarFacet",
    "NoNeedBufferVarsFacet",
    "OpAttrChecker",
    "OpBuilder",
    "OpDef",
    "OpFacets",
    "OpInfo",
    "OpMaker",
    "OpProto",
    "OpVersion",
    "Output",
    "SbpFacet",
    "SlotProto",
    "SlotRef",
    "build_op_info",
    "dtype_of",
    "dtype_of_attr",
    "empty_grad",
    "normal_axis",
    "op",
    "param_name",
    "slot_name",
]
