"""Whether ops, slots and attributes are documented, and forward ops have a formula."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oprack.op import OpProto
from oprack.testing.review.subject import Finding, Subject


def review(subject: Subject) -> Iterator[Finding]:
    """Look at what `oprack op NAME` would print."""
    for op_type in subject.ops:
        proto = subject.manager.op_info(op_type).proto
        if not proto.doc:
            yield Finding(
                "docs", f"op {op_type}: its class has no docstring", f"write one; `oprack op {op_type}` prints it"
            )
        elif not _is_gradient(proto) and not subject.runs_itself(op_type) and "$" not in proto.doc:
            yield Finding(
                "docs",
                f"op {op_type}: its documentation has no formula",
                r'write it in LaTeX between dollars, as r"""$$Out = \max(X, 0)$$"""',
            )
        for kind in ("inputs", "outputs", "attrs"):
            bare = [one.name for one in getattr(proto, kind).values() if not one.doc]
            if bare:
                what, example = ("attribute", "Attr(1.0, ") if kind == "attrs" else (kind[:-1], "Input(")
                yield Finding(
                    "docs",
                    f"op {op_type}: no documentation of {what} {', '.join(bare)}",
                    f'say in a sentence what it is, as {bare[0]} = {example}"...")',
                )


def _is_gradient(proto: OpProto) -> bool:
    slots = (*proto.inputs, *proto.outputs)
    return re.search(r"_grad\d?$", proto.type) is not None or any("@GRAD" in slot for slot in slots)
