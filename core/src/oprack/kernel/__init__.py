"""Kernels: their type, how they are declared, and how one is chosen."""

from oprack.kernel.decorator import KernelSpec, kernel, kernel_specs
from oprack.kernel.kernel_call import KernelCall
from oprack.kernel.kernel_map import Candidate, OpKernelMap, size_limits_ignored
from oprack.kernel.kernel_type import OpKernelType
from oprack.kernel.predicates import KernelQuery, Predicate, attr, dtype, has_input, kind, place, predicate
from oprack.kernel.rules import ANY_KERNEL, DETERMINISTIC_KERNELS, KernelRules
from oprack.kernel.signature import KernelSignature, bind_signature

__all__ = [
    "ANY_KERNEL",
    "DETERMINISTIC_KERNELS",
    "Candidate",
    "KernelCall",
    "KernelQuery",
    "KernelRules",
    "KernelSignature",
    "KernelSpec",
    "OpKernelMap",
    "OpKernelType",
    "Predicate",
    "attr",
    "bind_signature",
    "dtype",
    "has_input",
    "kernel",
    "kernel_specs",
    "kind",
    "place",
    "predicate",
    "size_limits_ignored",
]
