"""The vocabulary: the roles of ops that the core itself needs, since it knows no op type.

The backward pass and casts need ops and rely on their meaning. Each such meaning is a role with a signature; Python's
operators and the methods of tensors are brought by packs, with their ops (oprack.layers.operators). In the hook
oprack_vocabulary, a pack assigns one of its ops to a role by `register.role("copy", "assign")`, and
`oprack.packs.op_for("copy")` finds it. Who needs other ops adds roles by `register.new_role`, as the room of several
ranks does; an op can play a role that nothing which is installed asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.errors import DefinitionError
from oprack.python.records import dataclass

if TYPE_CHECKING:
    from oprack.op.proto import OpProto


@dataclass(frozen=True, slots=True)
class Role:
    """What is required of the op that plays a role.

    Attributes:
        name: Name of the role.
        inputs: Input slots that are bound when the op is appended. The op may have others if they are dispensable.
        attrs: Attributes that are set. The op may have others if they have defaults.
        outputs: Output slots that are bound.
        meaning: What the op computes.
        wanted_by: The calls that need it, for messages.
    """

    name: str
    inputs: tuple[str, ...]
    attrs: tuple[str, ...]
    outputs: tuple[str, ...]
    meaning: str
    wanted_by: str

    @classmethod
    def declared(cls, name: str, signature: str, meaning: str, wanted_by: str) -> Role:
        """A role from its signature, written as "X Y; axis -> Out": inputs, attributes, outputs.

        Args:
            name: Name of the role.
            signature: The signature.
            meaning: What the op computes.
            wanted_by: The calls that need it, for messages.

        Returns:
            The role.

        Raises:
            DefinitionError: The signature names no output.
        """
        arguments, _, outputs = signature.partition("->")
        inputs, _, attrs = arguments.partition(";")
        if not outputs.split():
            raise DefinitionError(
                f"role {name!r} has the signature {signature!r}; expected one such as 'X Y; axis -> Out'"
            )
        return cls(name, tuple(inputs.split()), tuple(attrs.split()), tuple(outputs.split()), meaning, wanted_by)

    @property
    def signature(self) -> str:
        """(X, Y, *, axis) -> Out"""
        arguments = [*self.inputs, *(["*", *self.attrs] if self.attrs else ())]
        return f"({', '.join(arguments)}) -> {', '.join(self.outputs)}"

    def misfits(self, proto: OpProto) -> list[str]:
        """Why an op can't play this role: what it lacks, or requires beyond the signature; [] when it can."""
        misfits = [f"it has no input {n}" for n in self.inputs if n not in proto.inputs]
        misfits += [f"it has no output {n}" for n in self.outputs if n not in proto.outputs]
        misfits += [f"it has no attribute {n}" for n in self.attrs if n not in proto.attrs]
        for bound, slots in ((self.inputs, proto.inputs), (self.outputs, proto.outputs)):
            misfits += [
                f"{s.name} is not dispensable" for s in slots.values() if not s.dispensable and s.name not in bound
            ]
        return misfits + [
            f"{a.name} has no default" for a in proto.attrs.values() if a.required and a.name not in self.attrs
        ]


ROLES = {
    role.name: role
    for role in (
        Role.declared("convert", "X; in_dtype out_dtype -> Out", "X as dtype `out_dtype`", "astype"),
        Role.declared("copy", "X -> Out", "X with its LoD in memory of its own", "detach, and gradients used twice"),
        Role.declared(
            "constant",
            "; shape dtype value str_value -> Out",
            "A tensor of one number: that of the text `str_value`, or `value` where it is empty",
            "numbers beside Variables in lists, and the gradient that backward starts from",
        ),
        Role.declared(
            "filled_like",
            "X; value -> Out",
            "A number in the shape, dtype and LoD of X",
            "gradients() of several elements",
        ),
        Role.declared(
            "zeros_like", "X -> Out", "Zeros in the shape, dtype and LoD of X", "gradients that did not arrive"
        ),
        Role.declared(
            "sum_of_all",
            "X; use_mkldnn -> Out",
            "The sum of a list of tensors or SelectedRows, which is dense as soon as one of them is",
            "gradients of what several ops read",
        ),
        Role.declared(
            "add", "X Y; axis -> Out", "X + Y; Y's first dim is dim `axis` of X", "LayerHelper.append_bias_op"
        ),
    )
}
"""The roles of the core by name; `PackManager.extensions.roles()` has those of packs as well."""
