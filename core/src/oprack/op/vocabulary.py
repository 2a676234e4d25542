"""The vocabulary: the roles of ops that the core itself needs, since it knows no op type.

The backward pass, casts, sizes that are open and programs split over ranks need ops and rely on their meaning. Each
such meaning is a role with a signature; Python's operators and the methods of tensors are brought by packs, with their
ops (oprack.layers.operators). In the hook oprack_vocabulary, a pack assigns one of its ops to a role by
`register.role("copy", "assign")`, and `oprack.packs.op_for("copy")` finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.errors import DefinitionError, did_you_mean
from oprack.records import dataclass

if TYPE_CHECKING:
    from oprack.op.proto import OpProto


@dataclass(frozen=True, slots=True)
class Role:
    """What the core requires of the op that plays a role.

    Attributes:
        name: Name of the role.
        inputs: Input slots that the core binds when it appends the op. The op may have others if they are dispensable.
        attrs: Attributes that the core sets. The op may have others if they have defaults.
        outputs: Output slots that the core binds.
        meaning: What the op computes.
        wanted_by: The calls that need it, for messages.
    """

    name: str
    inputs: tuple[str, ...]
    attrs: tuple[str, ...]
    outputs: tuple[str, ...]
    meaning: str
    wanted_by: str

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


ROLES: dict[str, Role] = {}
"""All roles by name."""


def find_role(name: object) -> Role:
    """Return the role of a name.

    Raises:
        DefinitionError: No role has that name. The message lists close matches.
    """
    role = ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        raise DefinitionError(
            f"{name!r} is no role of the vocabulary{did_you_mean(str(name), ROLES)}; expected one of "
            "oprack.op.vocabulary, or a newer oprack"
        )
    return role


def _role(name: str, signature: str, meaning: str, wanted_by: str) -> None:
    """Declare a role; the signature is written as "X Y; axis -> Out": inputs, attributes, outputs."""
    arguments, _, outputs = signature.partition("->")
    inputs, _, attrs = arguments.partition(";")
    slots = tuple(inputs.split()), tuple(attrs.split()), tuple(outputs.split())
    ROLES[name] = Role(name, *slots, meaning, wanted_by)


# Values ---------------------------------------------------------------------------------------------------------------
_role("convert", "X; in_dtype out_dtype -> Out", "X as dtype `out_dtype`", "astype")
_role("copy", "X -> Out", "The values and LoD of X in memory of their own", "detach, and gradients used twice")
_role(
    "constant",
    "; shape dtype value str_value -> Out",
    "A tensor of one number: that of the text `str_value`, or `value` where it is empty",
    "numbers beside Variables in lists, and the gradient that backward starts from",
)
_role("filled_like", "X; value -> Out", "A number in the shape, dtype and LoD of X", "gradients() of several elements")
_role("zeros_like", "X -> Out", "Zeros in the shape, dtype and LoD of X", "gradients that did not arrive")
_role(
    "sum_of_all",
    "X; use_mkldnn -> Out",
    "The sum of a list of tensors or SelectedRows, which is dense as soon as one of them is",
    "gradients of what several ops read",
)
_role("add", "X Y; axis -> Out", "X + Y; Y's first dim is dim `axis` of X", "LayerHelper.append_bias_op")

# Sizes ----------------------------------------------------------------------------------------------------------------
_role("shape_of", "Input -> Out", "The dims of Input, as integers", "x.shape[i] of an open dim in a captured function")
_role(
    "part",
    "Input; axes starts ends decrease_axis infer_flags -> Out",
    "From starts to ends along axes; dims of decrease_axis are removed",
    "x.shape[i] of an open dim in a captured function",
)

# Ranks ----------------------------------------------------------------------------------------------------------------
_RANKS = "programs that oprack.parallel.distribute splits"
_role("affine", "X; scale bias -> Out", "scale * X + bias", _RANKS)
_role("permute_dims", "X; axis -> Out XShape", "Dims of X in the order `axis`", _RANKS)
_role("split_dim", "X; axis num sections -> Out", "Equal parts, or parts of given sizes, along a dim", _RANKS)
_role("sum_of_ranks", "X; ring_id -> Out", "The sum of X over the ranks of a ring, on each of them", _RANKS)
_role("rows_of_ranks", "X; ring_id nranks -> Out", "The rows of all ranks of a ring, one after the other", _RANKS)
_role("sum_of_rows_of_ranks", "X; ring_id nranks -> Out", "This rank's part of the rows of the sum", _RANKS)
_role("from_one_rank", "X; ring_id root -> Out", "On all ranks of a ring what the rank `root` has", _RANKS)
