"""Custom domains: a node of a domain that a pack has is that pack's op."""

from __future__ import annotations

import re

from oprack.errors import MissingPackError, UnimplementedError, UnknownOpError
from oprack.names import tables
from oprack.packs import op_info
from oprack.packs.manager import default_manager
from oprack.python.text import printable

from oprack_onnx.table import Row
from oprack_onnx.values import Node

OWN = "oprack"
"""The domain of all ops that oprack has; `oprack.<pack>` is that of one pack."""


def op_of_domain(node: Node) -> Row:
    """The op of a pack that a node of a custom domain is.

    The domain is `oprack`, `oprack.<pack>`, or the name of a pack's entry point or of its distribution; the node's op
    is the op's type, or that in CamelCase.

    Raises:
        MissingPackError: No installed pack has the domain; the error names the distribution, where one is known.
        UnimplementedError: The pack has no such op.
    """
    domain = node.domain.removeprefix(f"{OWN}.") if node.domain != OWN else ""
    owned = _pack_ops(domain) if domain else None
    names = [node.op, snake_case(node.op)]
    if domain and owned is None:
        home = next((h for n in names if (h := tables.home("ops", n))), None)
        known = f"pip install {home}" if home else "install the pack that brings it"
        raise MissingPackError(
            f"{node.where}: no installed pack has the domain {printable(node.domain)!r}; {known} (a domain is the name "
            "of a pack, of its distribution, or 'oprack')"
        )
    for name in names:
        if owned is not None and name not in owned:
            continue
        try:
            info = op_info(name)
        except UnknownOpError as error:
            if owned is None and name == names[-1]:
                raise MissingPackError(f"{node.where}: {error}") from None
            continue
        inputs = " ".join(("*" if s.duplicable else "") + s.name for s in info.proto.inputs.values())
        outputs = " ".join(("*" if s.duplicable else "") + s.name for s in info.proto.outputs.values())
        return Row(name, tuple(inputs.split()), tuple(outputs.split()))
    raise UnimplementedError(
        f"{node.where}: pack {domain!r} has no op {names[0]!r} or {names[1]!r}; expected one of {sorted(owned or ())}"
    )


def _pack_ops(name: str) -> set[str] | None:
    wanted = name.replace("_", "-").lower()
    for pack in default_manager().packs():
        known = {pack.name, pack.distribution, f"oprack-{pack.name}"}
        if wanted in {str(k).replace("_", "-").lower() for k in known}:
            return set(pack.op_types)
    return None


def snake_case(name: str) -> str:
    """CamelCase as snake_case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
