"""A pair of element-wise functions, one of two inputs and one of one."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output
from oprack.op.families import like
from oprack.types import AttrType

BINARY = ("elementwise_add", "elementwise_mul")
UNARY = ("relu", "scale", "tanh", "sigmoid", "gelu")


def is_pair(functors: list[str], ending: str = "") -> bool:
    """Whether a list names one function of each sort; ending: "_grad" where those are the gradients."""
    names = [name.removesuffix(ending) for name in functors if name.endswith(ending)]
    return (
        len(functors) == 2 == len(names)
        and sorted(name in BINARY for name in names) == [False, True]
        and all(name in (*BINARY, *UNARY) for name in names)
    )


def _functors(ending: str = "") -> Attr:
    return Attr(
        REQUIRED,
        "The outer function and the inner one: [unary, binary] is unary(binary(X, Y)), and [binary, unary] is "
        "binary(X, unary(Y)).",
        type=AttrType.STRINGS,
    ).check(
        lambda v: is_pair(v, ending),
        f"one of {', '.join(n + ending for n in BINARY)} and one of {', '.join(n + ending for n in UNARY)}",
    )


AXIS = Attr(-1, "Dim of X at which the dims of Y start; -1 aligns the last dims.")
SCALE = Attr(0.0, "Factor of the function scale.")
SAVE = Attr(False, "Keep what the inner function gives.")


class Pair(OpDef):
    """Two functions in one op."""

    X = Input("Tensor of any shape.")
    Y = Input("Tensor whose shape broadcasts to X's.")
    Out = Output("Shape and LoD of X.")
    IntermediateOut = Output("What the inner function gives, with `save_intermediate_out`.", intermediate=True)
    axis = AXIS
    scale = SCALE
    save_intermediate_out = SAVE
    functor_list = _functors()

    def infer_shape(ctx: InferShapeContext) -> None:
        x, y = list(ctx.dim("X")), list(ctx.dim("Y"))
        ctx.require(len(y) <= len(x), f"X has shape {x} and Y {y}; expected no more dims of Y than of X")
        start = len(x) - len(y) if ctx.attr("axis") == -1 else ctx.attr("axis")
        met = x[start : start + len(y)]
        ctx.require(
            0 <= start and len(met) == len(y) and all(b in (1, -1, a) or a == -1 for a, b in zip(met, y, strict=True)),
            f"X has shape {x}, Y {y}, and axis is {ctx.attr('axis')}; expected dims of Y that are 1 or those of X",
        )
        like(ctx, [("Out", "X")])
        inner = "X" if ctx.attr("functor_list")[1] in BINARY else "Y"
        like(ctx, [("IntermediateOut", inner)])


class PairGrad(OpDef):
    """Its gradient: the gradients of both functions, the outer one first."""

    X = Input("As X of the forward op.")
    Y = Input("As Y of the forward op.")
    IntermediateOut = Input("As IntermediateOut of the forward op.", dispensable=True)
    Out = Input("As Out of the forward op.")
    Out_grad = Input("Gradient of Out.", name="Out@GRAD")
    X_grad = Output("Gradient of X.", name="X@GRAD")
    Y_grad = Output("Gradient of Y.", name="Y@GRAD")
    IntermediateOut_grad = Output("Not computed.", dispensable=True, name="IntermediateOut@GRAD")
    axis = AXIS
    scale = SCALE
    save_intermediate_out = SAVE
    functor_list = _functors("_grad")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_size("X", "Out@GRAD")
        like(ctx, [("X@GRAD", "X"), ("Y@GRAD", "Y")])


def pair_grad(fwd: ForwardOp) -> GradOp:
    """make_grad of a Pair."""
    slots = {slot: fwd.input(slot) for slot in ("X", "Y")} | {"Out": fwd.output("Out")}
    if fwd.attrs["save_intermediate_out"] and fwd.has_output("IntermediateOut"):
        slots["IntermediateOut"] = fwd.output("IntermediateOut")
    slots |= {"Out@GRAD": fwd.output_grad("Out")} | {f"{s}@GRAD": fwd.input_grad(s) for s in ("X", "Y")}
    functors = [f"{name}_grad" for name in fwd.attrs["functor_list"]]
    return GradOp(f"{fwd.type}_grad", attrs={**fwd.attrs, "functor_list": functors}, slots=slots)
