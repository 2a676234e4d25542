"""What is installed, as plain data: packs, ops, and which kernel would run."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from oprack.cli.op import condition, describe
from oprack.errors import InvalidArgumentError, NotFoundError
from oprack.kernel import KernelQuery, OpKernelType
from oprack.packs.manager import PackManager
from oprack.types import DTYPE_NAMES

_FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$\w])\$([^$]+)\$", re.DOTALL)


def packs(manager: PackManager) -> dict[str, Any]:
    """All packs, and all ops with the pack that brings each."""
    found = [pack.to_dict() for pack in manager.packs()]
    return {
        "packs": found,
        "ops": [{"op": t, "pack": _owner(manager, t), "places": manager.place_kinds(t)} for t in manager.op_types()],
        "places": ["cpu", *(kind for _, kind, _ in manager.targets("place"))],
        "libraries": ["plain", *manager.extensions.libraries()],
        "dtypes": sorted(DTYPE_NAMES.values()),
    }


def _owner(manager: PackManager, op_type: str) -> str:
    return manager.owner(op_type)


def op(manager: PackManager, name: str) -> dict[str, Any]:
    """An op with its documentation in parts: text, and formulas as MathML.

    Args:
        manager: The packs.
        name: Its type.

    Raises:
        UnknownOpError: No pack brings it.
    """
    facts = describe(manager, name)
    kernels = [kernel | {"condition": condition(kernel)} for kernel in facts["kernels"]]
    return facts | {"doc": documentation(facts["doc"]), "kernels": kernels}


def documentation(doc: str) -> list[dict[str, str]]:
    """A docstring as parts, each with `text`, or with `formula` as LaTeX and `mathml`."""
    doc = re.sub(r"(?<!\n)\n(?!\n)", " ", doc)  # lines end where the source's do; paragraphs are kept
    doc = re.sub(r"\n+(?=\$\$)|(?<=\$\$)\n+", "", doc)
    parts, end = [], 0
    for match in _FORMULA.finditer(doc):
        parts.append({"text": doc[end : match.start()]})
        parts.append({"formula": match[0], "mathml": _mathml(match[1] or match[2], bool(match[1]))})
        end = match.end()
    return [part for part in [*parts, {"text": doc[end:]}] if part.get("text") != ""]


@cache
def _mathml(formula: str, display: bool) -> str:
    from latex2mathml.converter import convert

    try:
        return convert(formula, display="block" if display else "inline")
    except Exception:  # a pack's formula that is no LaTeX is shown as it is written
        return ""


def choice(manager: PackManager, name: str, place: str, dtype: str, library: str) -> dict[str, Any]:
    """Which kernel of an op would run for tensors of one dtype, and why the others would not.

    Args:
        manager: The packs.
        name: The op.
        place: Kind of place.
        dtype: Of all inputs.
        library: The library that is asked for; "plain" for none.

    Returns:
        All kernels in the order of preference, with the reasons of those that do not fit; `runs` says who runs, and
        after whom when it declines.

    Raises:
        UnknownOpError: No pack brings the op.
        InvalidArgumentError: There is no such dtype.
    """
    if dtype not in DTYPE_NAMES.values():
        raise InvalidArgumentError(f"dtype {dtype!r}; expected one of {', '.join(sorted(DTYPE_NAMES.values()))}")
    proto = manager.op_info(name).proto
    if (operator := manager.operator_class(name)) is not None:
        return {
            "runs": [],
            "candidates": [],
            "note": f"{name} runs itself: {operator.__module__}:{operator.__qualname__}",
        }
    inputs = [slot.name for slot in proto.inputs.values() if not (slot.dispensable or slot.extra)]
    attrs = {attr.name: attr.default for attr in proto.attrs.values()}
    query = KernelQuery(name, attrs, dict.fromkeys(inputs, dtype), dict.fromkeys(inputs, "LoDTensor"), place)
    expected = OpKernelType(place, dtype, library)
    kernels = manager.kernel_map(name, place)
    candidates = [
        {
            "function": c.spec.name,
            "pack": c.spec.owner,
            "library": c.spec.library,
            "dtypes": sorted(c.spec.dtypes),
            "priority": c.spec.priority,
            "condition": condition(_facts(c.spec)),
            "where": c.spec.where,
            "reason": c.reason,
        }
        for c in kernels.candidates(expected, query)
    ]
    try:
        runs = [c.spec.name for c in kernels.choose(expected, query).chain()]
        note = "Attributes have their defaults, and inputs that may be absent are. The first one runs; each later one "
        note += "takes over where those before it decline or have too few elements."
    except NotFoundError as error:
        runs, note = [], str(error)
        if place != "cpu" and choice(manager, name, "cpu", dtype, "plain")["runs"]:
            note += "\nThe CPU's kernel runs, with inputs copied there and outputs back."
    return {"runs": runs, "candidates": candidates, "note": note}


def _facts(spec: Any) -> dict[str, Any]:
    when = spec.when.text if spec.when is not None else ""
    return {"when": when, "min_numel": spec.min_numel, "may_decline": spec.may_decline}
