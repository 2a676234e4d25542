"""OpProto and OpVersion: the signature of an op (slots and attributes), how a class declares it, and its history."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from typing import Any, Self

from oprack.errors import DefinitionError, did_you_mean
from oprack.python.records import dataclass
from oprack.types import AttrType


def param_name(slot: str) -> str:
    """How Python spells a slot or attribute: `Out@GRAD` -> `Out_grad`, `F1-Score` -> `F1_Score`, `lambda` -> `lambda_`.

    Args:
        slot: The slot or attribute.

    Returns:
        An identifier that is no keyword.
    """
    import keyword
    import re

    # Code is written with it, so nothing of a name but letters, digits and _ gets there.
    name = re.sub(r"\W|^(?=\d)", "_", slot.replace("@GRAD", "_grad"))
    return name + "_" if keyword.iskeyword(name) else name


def slot_name(param: str, *, grads: bool) -> str:
    """Back from `param_name`; `_grad` is turned into `@GRAD` only in gradient ops, where `grads` is True.

    Args:
        param: An identifier.
        grads: Whether the op is a gradient op.

    Returns:
        The slot.
    """
    name = param.removesuffix("_")
    suffix = ""
    while grads and name.endswith("_grad") and name != "_grad":
        name, suffix = name.removesuffix("_grad"), suffix + "@GRAD"
    return name + suffix


@dataclass(frozen=True)
class _SlotDeclaration:
    doc: str
    dispensable: bool = False
    duplicable: bool = False
    intermediate: bool = False
    extra: bool = False
    name: str = ""
    stop_gradient: bool = False


@dataclass(frozen=True)
class Input(_SlotDeclaration):
    """An input slot in a definition class.

    Attributes:
        doc: What it holds.
        dispensable: Whether it may be absent.
        duplicable: Whether it holds a list of variables.
        intermediate: Whether it is no part of the result.
        extra: Whether it is a runtime detail that an export may drop.
        name: The slot, when Python can't spell it.
        stop_gradient: Of no meaning for an input.
        minimum: How many variables a duplicable slot that is present has at least.
    """

    minimum: int = 0


@dataclass(frozen=True)
class Output(_SlotDeclaration):
    """An output slot in a definition class.

    Attributes:
        doc: What it holds.
        dispensable: Whether it may be absent.
        duplicable: Whether it holds a list of variables.
        intermediate: Whether it is no part of the result.
        extra: Whether it is a runtime detail that an export may drop.
        name: The slot, when Python can't spell it.
        stop_gradient: Whether no gradient flows back from it, on purpose, though it is floating: statistics, counts,
            scratch. What is intermediate or extra need not say so.
    """


@dataclass(frozen=True)
class SlotProto:
    """A named input or output of an op.

    Attributes:
        name: Its name.
        doc: What it holds.
        dispensable: Whether it may be absent.
        duplicable: Whether it holds a list of variables.
        intermediate: Whether it is no part of the result.
        extra: Whether it is a runtime detail that an export may drop.
        stop_gradient: Whether no gradient flows back from it, though it is floating.
        minimum: How many variables a duplicable slot that is present has at least.
    """

    name: str
    doc: str = ""
    dispensable: bool = False
    duplicable: bool = False
    intermediate: bool = False
    extra: bool = False
    stop_gradient: bool = False
    minimum: int = 0

    @property
    def param(self) -> str:
        """How Python spells it."""
        return param_name(self.name)

    def too_few(self, count: int) -> str:
        """What is wrong with a number of variables, for a message; "" when nothing is."""
        if not 0 < count < self.minimum:
            return ""
        return f"{self.name} has {count} variable{'s' * (count > 1)}; expected at least {self.minimum}"

    @classmethod
    def declared(cls, name: str, d: _SlotDeclaration) -> SlotProto:
        """The slot that a definition class declares.

        Args:
            name: Its name in the class.
            d: The declaration.

        Returns:
            The SlotProto.
        """
        minimum = getattr(d, "minimum", 0)
        return cls(
            d.name or name, d.doc, d.dispensable, d.duplicable, d.intermediate, d.extra, d.stop_gradient, minimum
        )


@dataclass(frozen=True)
class AttrProto:
    """An attribute of an op.

    Attributes:
        name: Its name.
        type: Its type on the wire.
        doc: What it means.
        default: Its default; None where there is none.
        required: Whether every op has to give it.
        extra: Whether it is a runtime detail that an export may drop.
        generated: Whether the core adds it to every op.
        support_tensor: Whether a Variable may stand in for it.
        checks: What its checks demand, in words.
    """

    name: str
    type: AttrType
    doc: str = ""
    default: Any = None
    required: bool = False
    extra: bool = False
    generated: bool = False
    support_tensor: bool = False
    checks: tuple[str, ...] = ()

    @property
    def param(self) -> str:
        """How Python spells it."""
        return param_name(self.name)


@dataclass
class OpProto:
    """Signature and documentation of an op; slots and attributes keep their order of declaration.

    Attributes:
        type: The op type.
        inputs: Input slots by name.
        outputs: Output slots by name.
        attrs: Attributes by name.
        doc: What the op computes.
    """

    type: str
    inputs: dict[str, SlotProto] = field(default_factory=dict)
    outputs: dict[str, SlotProto] = field(default_factory=dict)
    attrs: dict[str, AttrProto] = field(default_factory=dict)
    doc: str = ""


CHANGES = {
    **{f"{done}_{what}": what for done in ("new", "modify", "delete") for what in ("attr", "input", "output")},
    "bugfix": "",
}
"""Kinds of changes -> what of the op they name; "" for those that name nothing."""


@dataclass
class OpVersion:
    """The history of an op; its version number is the number of checkpoints (an op without any has version 0).

    Attributes:
        op_type: The op.
        checkpoints: (what changed, the changes) for each version, in order; see `checkpoint`.
    """

    op_type: str
    checkpoints: list[tuple[str, list[tuple[str, str, Any]]]] = field(default_factory=list)

    def checkpoint(self, note: str, *changes: tuple[str, str, Any]) -> Self:
        """Add a version.

        Args:
            note: What changed, in words.
            changes: (kind, name, value) of each, where the kind is one of CHANGES: "new_attr", "modify_input",
                "delete_output", "bugfix" and so on.

        Returns:
            The history itself.

        Raises:
            DefinitionError: A change has another form, or there is no such kind.
        """
        for change in changes:
            kind = change[0] if isinstance(change, tuple) and change else change
            if not (isinstance(change, tuple) and len(change) == 3 and kind in CHANGES):
                raise DefinitionError(
                    f"OpVersion({self.op_type!r}).checkpoint({note!r}, {change!r}): expected (kind, name, value), and "
                    f"as kind one of {', '.join(CHANGES)}{did_you_mean(str(kind), CHANGES)}"
                )
        self.checkpoints.append((note, list(changes)))
        return self

    @property
    def version(self) -> int:
        """The number of the latest version: how many checkpoints there are."""
        return len(self.checkpoints)

    def unknown_names(self, attrs: Collection[str], inputs: Collection[str], outputs: Collection[str]) -> list[str]:
        """What the history names, and the op does not have.

        Args:
            attrs: The op's attributes.
            inputs: Its input slots.
            outputs: Its output slots.

        Returns:
            A text for each, such as "new_attr 'axis'"; what was deleted is not there and not meant.
        """
        known = {"attr": attrs, "input": inputs, "output": outputs}
        return [
            f"{kind} {name!r}{did_you_mean(name, known[what])}"
            for _, changes in self.checkpoints
            for kind, name, _ in changes
            if (what := CHANGES[kind]) and not kind.startswith("delete") and name not in known[what]
        ]
