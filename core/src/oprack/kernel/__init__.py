"""Kernels: their type, how they are declared, and how one is chosen."""

from oprack.kernel.context import Array, ArrayModule, KernelContext, RequiredArray
from oprack.kernel.decorator import KernelSpec, kernel, kernel_specs
from oprack.kernel.invoke import decline
from oprack.kernel.kernel_map import (
    ANY_KERNEL,
    DETERMINISTIC_KERNELS,
    PLAIN_KERNELS,
    Candidate,
    KernelRules,
    OpKernelMap,
    size_limits_ignored,
)
from oprack.kernel.predicates import KernelQuery, Predicate, attr, dtype, has_input, kind, place, predicate
from oprack.kernel.signature import KernelSignature, bind_signature
from oprack.kernel.specialization import KernelSpecialization, Specialize
from oprack.op.infer import OpKernelType

__all__ = [
    "ANY_KERNEL",
    "DETERMINISTIC_KERNELS",
    "PLAIN_KERNELS",
    "Array",
    "ArrayModule",
    "Candidate",
    "KernelContext",
    "KernelQuery",
    "KernelRules",
    "KernelSignature",
    "KernelSpec",
    "KernelSpecialization",
    "OpKernelMap",
    "OpKernelType",
    "Predicate",
    "RequiredArray",
    "Specialize",
    "attr",
    "bind_signature",
    "decline",
    "dtype",
    "has_input",
    "kernel",
    "kernel_specs",
    "kind",
    "place",
    "predicate",
    "size_limits_ignored",
]
