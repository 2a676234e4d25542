"""Whether ops, slots and attributes are documented and named like others, and forward ops have a formula."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oprack.names.tables import paddle_ops
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
        yield from _names(subject, proto)
        for kind in ("inputs", "outputs", "attrs"):
            bare = [one.name for one in getattr(proto, kind).values() if not one.doc]
            if bare:
                what, example = ("attribute", "Attr(1.0, ") if kind == "attrs" else (kind[:-1], "Input(")
                yield Finding(
                    "docs",
                    f"op {op_type}: no documentation of {what} {', '.join(bare)}",
                    f'say in a sentence what it is, as {bare[0]} = {example}"...")',
                )


_STYLES = {
    "type": (re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_?"), "small letters with '_' between words", "fused_relu"),
    "slot": (re.compile(r"[A-Z]\w*"), "words that begin with a capital", "OutScale"),
    "attribute": (re.compile(r"[a-z]\w*"), "small letters with '_' between words", "out_scale"),
}


def _names(subject: Subject, proto: OpProto) -> Iterator[Finding]:
    """Names that are spelled otherwise than Paddle's, unless Paddle itself has the op. Gradient ops follow theirs."""
    if proto.type in paddle_ops() or _is_gradient(proto):
        return
    slots = [s.name.removesuffix("@GRAD") for s in (*proto.inputs.values(), *proto.outputs.values())]
    named = {"type": [proto.type], "slot": slots, "attribute": list(proto.attrs)}
    for what, names in named.items():
        style, text, example = _STYLES[what]
        odd = [n for n in dict.fromkeys(names) if not style.fullmatch(n) or (what != "slot" and n != n.lower())]
        if odd:
            yield Finding(
                "docs",
                f"op {proto.type}: {what} {', '.join(odd)} is not spelled as others are",
                f"write {text}, as {example}, before programs hold the name",
                note=True,
            )


def _is_gradient(proto: OpProto) -> bool:
    slots = (*proto.inputs, *proto.outputs)
    return re.search(r"_grad\d?$", proto.type) is not None or any("@GRAD" in slot for slot in slots)
