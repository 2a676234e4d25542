"""An op as other frameworks ask for it: its call, its results without values, its gradient; no framework is known here.

oprack-torch and oprack-jax make their ops of this. A framework brings its tensors as oprack's and back, and how it
registers a function, the shapes of its results and its gradient.
"""

from oprack.bridge.abstract import Abstract, infer_abstract, require_known
from oprack.bridge.call import BridgedFunctions, BridgedOp, bridged_op, bridged_ops, run
from oprack.bridge.gradient import Gradient, gradient_of
from oprack.bridge.rules import autocast_dtype, takes_batches

__all__ = [
    "Abstract",
    "BridgedFunctions",
    "BridgedOp",
    "Gradient",
    "autocast_dtype",
    "bridged_op",
    "bridged_ops",
    "gradient_of",
    "infer_abstract",
    "require_known",
    "run",
    "takes_batches",
]
