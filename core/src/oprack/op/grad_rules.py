"""The rules of gradient ops that follow from their declaration: make_grad, infer_shape and infer_var_type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oprack.op.facets import GradOpMaker
from oprack.op.forward_op import ForwardOp, SlotRef
from oprack.op.grad import GradOp
from oprack.types import EMPTY_VAR

Condition = Callable[[ForwardOp], bool]
Dims = Callable[[Any], Sequence[int]]


class DerivedGradOpMaker(GradOpMaker):
    """The gradient op that a GradOpDef declares for its forward op; slots that the forward op lacks are left out."""

    def __init__(
        self,
        op_type: str,
        inputs: Mapping[str, SlotRef],
        outputs: Mapping[str, SlotRef],
        when: Mapping[str, Condition] | None = None,
    ) -> None:
        self.op_type, self.inputs, self.outputs, self.when = op_type, inputs, outputs, when or {}

    def __call__(self, fwd: ForwardOp) -> GradOp:
        inputs, outputs = self._present(fwd, self.inputs), self._present(fwd, self.outputs)
        return GradOp(self.op_type, attrs=fwd.attrs, inputs=inputs, outputs=outputs)

    def _present(self, fwd: ForwardOp, refs: Mapping[str, SlotRef]) -> dict[str, SlotRef]:
        left_out = {slot for slot, condition in self.when.items() if slot in refs and not condition(fwd)}
        return {
            slot: ref
            for slot, ref in refs.items()
            if slot not in left_out
            and (fwd.has_input(ref.slot) if ref.role.startswith("input") else fwd.has_output(ref.slot))
        }


def shapes_like(
    pairs: Sequence[tuple[str, str, bool]], dims: Sequence[tuple[str, Dims]], *, lod: bool
) -> Callable[[Any], None]:
    """Make the shape rule of a gradient op.

    Args:
        pairs: (gradient, the input whose shape it gets, whether both hold lists).
        dims: (input, the dims that it must have).
        lod: Whether gradients get the LoD as well.
    """

    def infer_shape(ctx: Any) -> None:
        for slot, expected in dims:
            ctx.require_dims(slot, expected(ctx), why="what the forward op gives")
        for grad, source, is_list in pairs:
            for i in range(ctx.input_count(source)) if is_list else (0,) if ctx.has_input(source) else ():
                ctx.set_dim(grad, ctx.dim(source, i), i)
                if lod:
                    ctx.share_lod(source, grad, i, i)

    return infer_shape


def types_like(pairs: Sequence[tuple[str, Sequence[str], bool]]) -> Callable[[Any], None]:
    """Make the type rule of a gradient op.

    Args:
        pairs: (gradient, inputs of which the first present one gives container and dtype, whether it holds a list).
    """

    def infer_var_type(ctx: Any) -> None:
        for grad, sources, is_list in pairs:
            source = next((s for s in sources if ctx.has_input(s)), None)
            for i, name in enumerate(ctx.output_names(grad) if source is not None else ()):
                if name != EMPTY_VAR:
                    # where the list itself is absent, one gradient may stand for all of it: stack_grad reads Y@GRAD
                    j = i if is_list and i < ctx.input_count(source) else 0
                    ctx.set_kind(grad, ctx.kind(source, j), i)
                    ctx.set_dtype(grad, ctx.dtype(source, j), i)

    return infer_var_type
