"""cuda_bias_act: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, OpDef, dtype_of, empty_grad
from oprack.op.families import out_like_x
from oprack.types import AttrType

# activation -> its attributes, as the source's a, b, c
ACTIVATIONS = {
    "relu": (),
    "sigmoid": (),
    "tanh": (),
    "silu": (),
    "relu6": ("threshold",),
    "leaky_relu": ("alpha",),
    "swish": ("beta",),
    "hard_sigmoid": ("slope", "offset"),
    "hard_swish": ("threshold", "scale", "offset"),
}


class CudaBiasAct(OpDef, type="cuda_bias_act"):
    r"""$$Out = act(X + Bias)$$ with a number of Bias for each element along `axis`; made by passes, for inference."""

    X = op.Input("[*, C, *].")
    Bias = op.Input("[C], in any shape with that many elements.")
    Out = op.Output("Shape and LoD of X.")
    axis = Attr(1, "The dim of X that Bias lies along.")
    act = Attr("relu", f"The activation: one of {', '.join(ACTIVATIONS)}.").in_set(tuple(ACTIVATIONS))
    numbers = Attr([], "Values of the activation's attributes, in their order.", type=AttrType.FLOATS)
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")
    infer_shape = out_like_x
