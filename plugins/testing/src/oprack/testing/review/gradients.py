"""Whether every op has a gradient or says that it has none, and a case checks it against central differences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oprack.autodiff.path import differentiable
from oprack.desc import OpDesc, ProgramDesc
from oprack.errors import OprackError
from oprack.op import GradOp, empty_grad
from oprack.op.desc_rules import DescInferVarTypeContext, read_outputs
from oprack.op.grad import ForwardOp
from oprack.op.info import OpInfo
from oprack.testing.review.docs import _is_gradient
from oprack.testing.review.subject import Finding, Subject
from oprack.types import VarType


def review(subject: Subject) -> Iterator[Finding]:
    """Look at the gradient makers, and for cases with grads."""
    for op_type in subject.each(subject.ops, "gradients"):
        info = subject.manager.op_info(op_type)
        if _is_gradient(info.proto) or not _floating(subject, op_type):
            continue
        if info.grad_op_maker is None:
            yield Finding(
                "gradients",
                f"op {op_type} has no gradient: a loss behind it can't be differentiated",
                "derive a class from GradOpDef with of= and reads= in the file of the op, or write "
                "make_grad = empty_grad where nothing flows back",
                note=True,
            )
            continue
        for slot in lost_outputs(info):
            yield Finding(
                "gradients",
                f"op {op_type}: output {slot} is floating, but no gradient op reads {slot}@GRAD, so that a loss "
                "behind it has no gradient",
                f'let the gradient op read it, reads="... {slot}@GRAD?", or say Output(..., stop_gradient=True) where '
                "nothing should flow back, or intermediate=True where it is no result",
            )
        if info.grad_op_maker is not empty_grad and not subject.compares_gradient(op_type):
            slot = next(iter(info.proto.inputs), "X")
            yield Finding(
                "gradients",
                f"op {op_type}: no case compares its gradient with central differences",
                f"add grads=[{slot!r}] to an OpCase in {subject.case_file(op_type)}, with inputs away from kinks",
            )


def lost_outputs(info: OpInfo) -> list[str]:
    """Floating results of an op that its gradient ops do not differentiate, though the op does not say that of them.

    Args:
        info: The op; it has a gradient maker.

    Returns:
        Their slots.
    """
    if info.grad_op_maker in (None, empty_grad):
        return []
    inputs, outputs = (
        {s.name: [f"{s.name}.{i}" for i in range(2 if s.duplicable else 1)] for s in side.values()}
        for side in (info.proto.inputs, info.proto.outputs)
    )
    op = OpDesc(info.type, inputs, outputs)
    read = _read(info, op)
    wanted = [s.name for s in info.proto.outputs.values() if not (s.intermediate or s.extra or s.stop_gradient)]
    floating = _floating_outputs(info, op)
    return [slot for slot in wanted if read is not None and slot not in read and slot in floating]


def _read(info: OpInfo, op: OpDesc) -> set[str] | None:
    """Output slots whose gradients are read; None when the maker needs values of attributes to say."""
    try:
        maker = info.require_grad_op_maker()
        forward = ForwardOp(info.proto, defaults(info), {s: len(n) for s, n in op.inputs.items()}, op.outputs)
        grads = maker(forward)
    except (OprackError, LookupError, TypeError):
        return None
    return read_outputs([grads] if isinstance(grads, GradOp) else grads)


def _floating_outputs(info: OpInfo, op: OpDesc) -> set[str]:
    """Output slots that hold floating tensors when all inputs do; all of them when the type rule can't say."""
    block = ProgramDesc().blocks[0]
    for name in op.input_arg_names():
        block.create_var(name, dtype="float64", shape=(2, 2))
    for name in op.output_arg_names():
        block.create_var(name)
    try:
        info.run_infer_var_type(DescInferVarTypeContext(op, block, info, defaults(info)))
    except (OprackError, LookupError, TypeError):
        return set(op.outputs)
    kinds = (VarType.LOD_TENSOR, VarType.SELECTED_ROWS)
    return {
        slot
        for slot, names in op.outputs.items()
        if (var := block.var(names[0])).type in kinds and (var.dtype is None or differentiable(block, names[0]))
    }


def defaults(info: OpInfo) -> dict[str, Any]:
    """Attributes with their defaults; one that is required is left out."""
    return {a.name: a.default for a in info.proto.attrs.values() if not a.required}


def _floating(subject: Subject, op_type: str) -> bool:
    places = subject.manager.place_kinds(op_type)
    return any("float32" in k.dtypes or "float64" in k.dtypes
               for place in places for k in subject.manager.kernel_map(op_type, place))  # fmt: skip
