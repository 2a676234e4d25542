"""Installs the methods of Tensor, which call ops, and registers the interpreters that run these calls.

Import Tensor from here wherever users may see it: the class in oprack.eager_tensor holds the data alone until this
module is imported.
"""

from __future__ import annotations

import oprack.autograd.interpreter
import oprack.autograd.walk
import oprack.functional.tensor_conversions
import oprack.interpreter.lazy  # noqa: F401  all four register what they do with the modes, or with tensors
from oprack.eager_tensor import Tensor, TensorType
from oprack.eager_tensor.methods import SharedMethods, TensorMethods
from oprack.functional.creation import to_tensor
from oprack.functional.generated import function
from oprack.functional.op_methods import MethodsOfPacks
from oprack.functional.tensor_methods import OpCalls
from oprack.functional.written import public, public_names
from oprack.interpreter.symbol import Symbol
from oprack.layers.operators import OF_TENSORS, SIGNS, offer_operators

__all__ = ["Tensor", "function", "public", "public_names", "to_tensor"]

_OF_THE_CLASS = {"__module__", "__qualname__", "__doc__", "__slots__", "__dict__", "__weakref__", "__annotations__"}


def install(methods: type, target: type) -> None:
    """Copy the methods of a class and its bases to another class, except those that the target defines itself."""
    own = set(vars(target))
    for base in reversed([c for c in methods.__mro__ if c not in (object, type)]):
        for name, value in vars(base).items():
            if name not in own and name not in _OF_THE_CLASS:
                setattr(target, name, value)


install(TensorMethods, Tensor)
install(OpCalls, Tensor)
install(SharedMethods, Symbol)
install(OpCalls, Symbol)
install(MethodsOfPacks, TensorType)
offer_operators(Tensor, SIGNS | OF_TENSORS, "tensor_operators", "operators")
Tensor.__module__ = __name__  # pickles and documentation lead to the class with its methods
