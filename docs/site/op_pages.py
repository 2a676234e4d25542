"""The op reference, from what is installed: a page for each forward op with its gradient ops, and an index by pack.

The text comes from the definitions themselves: their docstrings, slots, attributes, kernels and versions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from formulas import in_cell, plain
from oprack import default_manager
from oprack.cli.op import condition, describe

from examples import example, written


def forward_of(op_type: str, known: Collection[str]) -> str:
    """The op on whose page an op stands: relu for relu_grad and relu_double_grad, itself for any other.

    Args:
        op_type: The op.
        known: All ops.
    """
    name = re.sub(r"(_double|_triple)?(_grad)+$", "", op_type)
    return name if name in known else op_type


def op_pages(only: Collection[str] = ()) -> dict[str, str]:
    """Markdown by path: ops/index.md, and ops/<op>.md for each forward op.

    Args:
        only: Forward ops to which the reference is limited; empty for all.
    """
    manager = default_manager()
    types = sorted(manager.op_types())
    gradients = defaultdict(list)
    for op_type in types:
        forward = forward_of(op_type, types)
        if not only or forward in only:
            gradients[forward].append(op_type)
    facts = {t: describe(manager, t) for found in gradients.values() for t in found}
    pages = {
        f"ops/{forward}.md": _page([facts[t] for t in sorted(found, key=lambda t: (t != forward, len(t)))])
        for forward, found in gradients.items()
    }
    return {"ops/index.md": _index(facts, gradients)} | pages


def _index(facts: dict[str, Any], gradients: dict[str, list[str]]) -> str:
    by_pack = defaultdict(list)
    for forward in gradients:
        by_pack[facts[forward]["pack"]].append(forward)
    lines = [
        "# Operators",
        "",
        f"{len(facts)} ops of {len(by_pack)} packs, {len(facts) - len(gradients)} of them gradient ops, which stand on "
        "the page of their forward op. This reference is made from the packs that are installed where the site is "
        "built: `oprack op NAME` prints the same for what is installed with you.",
        "",
    ]
    for pack, ops in sorted(by_pack.items()):
        lines += [f"## {pack}", "", ", ".join(f"[{op}]({op}.md)" for op in ops), ""]
    return "\n".join(lines)


def _page(ops: Sequence[dict[str, Any]]) -> str:
    """A forward op and what computes its gradients."""
    forward, *rest = ops
    lines = [f"# {forward['op']}", "", f"Pack `{forward['pack']}`, version {forward['version']} of the op", ""]
    lines += [plain(forward["doc"]), ""] if forward["doc"] else []
    lines += _call(forward["op"]) + _example(forward) + _signature(forward, "##") + _kernels(forward, "##")
    lines += _rules(forward)
    if rest:
        lines += ["## Gradient", "", _gradient_text(forward), ""]
    for gradient in rest:
        lines += [f"### {gradient['op']}", ""]
        lines += [plain(gradient["doc"]), ""] if gradient["doc"] else []
        lines += _signature(gradient, "####", forward["attrs"]) + _kernels(gradient, "####")
    if not rest:
        lines += ["## Gradient", "", _gradient_text(forward), ""]
    return "\n".join(lines)


def _call(op_type: str) -> list[str]:
    """How Python calls the op."""
    from oprack import functional

    try:
        signature = getattr(functional, op_type).op_signature
    except AttributeError:
        return []
    text = f"oprack.functional.{signature}"
    if len(text) > 88:
        head, _, rest = text.partition("(")
        parts = re.split(r", (?![^\[(]*[\])])", rest.removesuffix(")"))
        text = head + "(\n" + "".join(f"    {part},\n" for part in parts) + ")"
    return ["```python", text, "```", ""]


def _example(facts: dict[str, Any]) -> list[str]:
    if facts["op"] in written():
        code, printed = written()[facts["op"]]
        return ["## Example", "", "```python", code, "```", "", "```text", printed, "```", ""]
    found = example(facts["op"])
    if found is None:
        return []
    lines = ["## Example", "", "```python", found.code, "```", ""]
    if found.outputs:
        text = "\n".join(f"{slot} = {_array(value, len(slot) + 3)}" for slot, value in found.outputs.items())
        lines += ["Paddle 2.6.2 computes:" if found.recorded else "It gives:", "", "```text", text, "```", ""]
    elif found.shapes:
        text = "\n".join(f"{slot}: {shape}" for slot, shape in found.shapes.items())
        lines += ["It gives:", "", "```text", text, "```", ""]
    return lines


def _array(value: Any, column: int) -> str:
    shown = np.array2string(
        np.asarray(value), precision=6, separator=", ", prefix=" " * column, suppress_small=True, max_line_width=88
    )
    return re.sub(r"\n\n+", "\n", shown)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; nothing when it has no rows."""
    body = [f"| {' | '.join(row)} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}", *body, ""] if body else []


def _signature(facts: dict[str, Any], level: str, shared: Sequence[dict[str, Any]] = ()) -> list[str]:
    """Slots and attributes; those that are `shared`, the forward op's, are not listed again."""
    lines = []
    for title in ("inputs", "outputs"):
        rows = [
            (f"`{s['name']}`", in_cell(s["doc"]) + (f" *{', '.join(s['flags'])}*" if s["flags"] else ""))
            for s in facts[title]
        ]
        lines += [f"{level} {title.capitalize()}", "", *_table(("Slot", "Meaning"), rows)] if rows else []
    attrs = [a for a in facts["attrs"] if "extra" not in a["flags"]]
    if attrs and all(a in shared for a in facts["attrs"]):
        return [*lines, "Its attributes are the forward op's.", ""]
    rows = [
        (
            f"`{a['name']}`",
            a["type"].lower(),
            "required" if "required" in a["flags"] else f"`{a['default']!r}`".replace("|", r"\|"),
            in_cell(a["doc"] + (f" Expected: {', and '.join(a['checks'])}." if a["checks"] else "")),
        )
        for a in attrs
    ]
    if rows:
        lines += [f"{level} Attributes", "", *_table(("Attribute", "Type", "Default", "Meaning"), rows)]
    extra = [f"`{a['name']}`" for a in facts["attrs"] if "extra" in a["flags"]]
    if extra:
        lines += [f"Attributes that change nothing here and are kept for Paddle: {', '.join(extra)}.", ""]
    return lines


def _kernels(facts: dict[str, Any], level: str) -> list[str]:
    rows = sorted(
        (
            k["place"],
            "" if k["library"] == "plain" else k["library"],
            k["owner"],
            str(k["priority"]),
            ", ".join(k["dtypes"]),
            in_cell(_portable(condition(k))),
        )
        for k in facts["kernels"]
    )
    rows = list(dict.fromkeys(rows))
    if not rows:
        own = f"The op runs itself: `{facts['operator']}`." if facts["operator"] else "None is installed."
        return [f"{level} Kernels", "", own, ""]
    return [f"{level} Kernels", "", *_table(("Place", "Library", "Pack", "Priority", "Dtypes", "When"), rows)]


def _portable(text: str) -> str:
    """A condition without what it says of the machine that builds the site."""
    return re.sub(r"\((?:not here: |`oprack doctor`).*?\)(?= and|;|$)", "", text).replace(" ;", ";").strip()


def _rules(facts: dict[str, Any]) -> list[str]:
    lines = []
    if facts["inplace"]:
        lines.append("In place: " + ", ".join(f"`{out}` may reuse `{x}`" for x, out in facts["inplace"].items()) + ".")
    if facts["roles"]:
        lines.append("Roles: " + ", ".join(f"`{role}`" for role in facts["roles"]) + ".")
    lines += [f"Version {i}: {plain(note)}" for i, note in enumerate(facts["checkpoints"], 1)]
    return ["## Rules and versions", "", *(f"- {line}" for line in lines), ""] if lines else []


def _gradient_text(facts: dict[str, Any]) -> str:
    gradient = facts["gradient"]
    if gradient["kind"] == "none":
        return "None: the op is not differentiable."
    if gradient["kind"] == "empty":
        return "None on purpose: nothing flows back."
    made = ", ".join(f"`{op}`" for op in gradient["ops"])
    return f"Made of {made}." if made else "Which ops compute it depends on attributes or inputs."
