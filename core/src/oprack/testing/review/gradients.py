"""Whether every op has a gradient or says that it has none, and a case checks it against central differences."""

from __future__ import annotations

from collections.abc import Iterator

from oprack.op import empty_grad
from oprack.testing.review.docs import _is_gradient
from oprack.testing.review.subject import Finding, Subject


def review(subject: Subject) -> Iterator[Finding]:
    """Look at the gradient makers, and for cases with grads."""
    for op_type in subject.ops:
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
        elif info.grad_op_maker is not empty_grad and not any(c.grads for c in subject.cases_of(op_type)):
            slot = next(iter(info.proto.inputs), "X")
            yield Finding(
                "gradients",
                f"op {op_type}: no case compares its gradient with central differences",
                f"add grads=[{slot!r}] to an OpCase in tests/cases/{op_type}.py, with inputs away from kinks",
            )


def _floating(subject: Subject, op_type: str) -> bool:
    places = subject.manager.place_kinds(op_type)
    return any("float32" in k.dtypes or "float64" in k.dtypes
               for place in places for k in subject.manager.kernel_map(op_type, place))  # fmt: skip
