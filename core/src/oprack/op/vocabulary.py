"""The vocabulary: the roles of ops that the core itself needs, since it knows no op type.

Operators and methods of Variables and tensors, indexing and the backward pass append ops and rely on their meaning.
Each such meaning is a role with a signature. In the hook oprack_vocabulary, a pack assigns one of its ops to a role by
`register.role("add", "elementwise_add")`, and `oprack.packs.vocabulary.op_for("add")` finds it.
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


# Arithmetic -----------------------------------------------------------------------------------------------------------
_BROADCAST = "; Y is broadcast to X, or X to Y"
_role("add", "X Y; axis -> Out", f"X + Y{_BROADCAST}; Y's first dim is dim `axis` of X, -1: the last", "operator +")
_role("subtract", "X Y -> Out", f"X - Y{_BROADCAST}", "operator -")
_role("multiply", "X Y -> Out", f"X * Y{_BROADCAST}", "operator *")
_role("divide", "X Y -> Out", f"X / Y{_BROADCAST}", "operator /")
_role("power", "X Y -> Out", f"X to the power of Y{_BROADCAST}", "operator **")
_role("floor_divide", "X Y -> Out", f"X / Y, rounded down{_BROADCAST}", "operator //")
_role("modulo", "X Y -> Out", f"The remainder of X / Y, with the sign of Y{_BROADCAST}", "operator %")
_role("matrix_product", "X Y -> Out", "The product of matrices in the last two dims, as NumPy's", "operator @")
_role("absolute", "X -> Out", "|X|", "abs()")
_role("affine", "X; scale bias -> Out", "scale * X + bias", "operators of a tensor and a number")
_role("number_power", "X; factor -> Out", "X to the power of the number `factor`", "operator ** with a number")
_role("larger", "X Y -> Out", f"The larger of X and Y{_BROADCAST}", "clip with a lower bound for integers")
_role("smaller", "X Y -> Out", f"The smaller of X and Y{_BROADCAST}", "clip with an upper bound for integers")
_role("clamp", "X Min Max; min max -> Out", "X cut to between two numbers, or tensors of one element", "method clip")

# Comparisons and logic: outputs are bool ------------------------------------------------------------------------------
_role("less", "X Y -> Out", f"X < Y{_BROADCAST}", "operator <")
_role("less_or_equal", "X Y -> Out", f"X <= Y{_BROADCAST}", "operator <=")
_role("greater", "X Y -> Out", f"X > Y{_BROADCAST}", "operator >")
_role("greater_or_equal", "X Y -> Out", f"X >= Y{_BROADCAST}", "operator >=")
_role("equals", "X Y -> Out", f"X == Y{_BROADCAST}", "operator ==")
_role("differs", "X Y -> Out", f"X != Y{_BROADCAST}", "operator !=")
_role("and", "X Y -> Out", f"Whether X and Y are true{_BROADCAST}", "operator &")
_role("or", "X Y -> Out", f"Whether X or Y is true{_BROADCAST}", "operator |")
_role("xor", "X Y -> Out", f"Whether one of X and Y is true, not both{_BROADCAST}", "operator ^")
_role("not", "X -> Out", "Whether X is false", "operator ~")

# Bits of integers -----------------------------------------------------------------------------------------------------
_role("bits_and", "X Y -> Out", f"The bits that are set in X and in Y{_BROADCAST}", "operator & of integers")
_role("bits_or", "X Y -> Out", f"The bits that are set in X or in Y{_BROADCAST}", "operator | of integers")
_role("bits_xor", "X Y -> Out", f"The bits that differ between X and Y{_BROADCAST}", "operator ^ of integers")
_role("bits_not", "X -> Out", "The bits that are not set in X", "operator ~ of integers")
_role("left_shift", "X Y -> Out", f"X times 2 to the power of Y, cut to its bits{_BROADCAST}", "operator <<")
_role("right_shift", "X Y -> Out", f"X divided by 2 to the power of Y, rounded down{_BROADCAST}", "operator >>")

# Values ---------------------------------------------------------------------------------------------------------------
_role("convert", "X; in_dtype out_dtype -> Out", "X as dtype `out_dtype`", "astype, and operands of two dtypes")
_role("copy", "X -> Out", "The values and LoD of X in memory of their own", "clone, detach and gradients used twice")
_role(
    "constant",
    "; shape dtype value str_value -> Out",
    "A tensor of one number: that of the text `str_value`, or `value` where it is empty",
    "numbers beside tensors, and the gradient that backward starts from",
)
_role("filled_like", "X; value -> Out", "A number in the shape, dtype and LoD of X", "gradients() of several elements")
_role("zeros_like", "X -> Out", "Zeros in the shape, dtype and LoD of X", "gradients that did not arrive")
_role(
    "sum_of_all",
    "X; use_mkldnn -> Out",
    "The sum of a list of tensors or SelectedRows, which is dense as soon as one of them is",
    "gradients of what several ops read",
)

# Shapes ---------------------------------------------------------------------------------------------------------------
_role("change_shape", "X; shape -> Out XShape", "X in another shape, with one -1; 0 keeps a dim", "method reshape")
_role("permute_dims", "X; axis -> Out XShape", "Dims of X in the order `axis`", "method transpose")
_role("remove_dims", "X; axes -> Out XShape", "X without dims of size 1, all when axes is []", "method squeeze")
_role("insert_dims", "X; axes -> Out XShape", "X with dims of size 1 at `axes`", "method unsqueeze, and x[None]")
_role("merge_dims", "X; start_axis stop_axis -> Out XShape", "Dims from one to another as one dim", "method flatten")
_role("repeat_dims", "X; repeat_times -> Out", "X repeated along each dim", "method tile")
_role("broadcast_to", "X; shape -> Out", "X broadcast to a shape; -1 keeps a dim", "method expand")
_role("dims_of", "Input -> Out", "How many elements each dim of Input has", "proofs that entries of a batch are alone")

# Parts ----------------------------------------------------------------------------------------------------------------
_role(
    "part",
    "Input StartsTensorList EndsTensorList; axes starts ends decrease_axis infer_flags -> Out",
    "From starts to ends along axes; dims of decrease_axis are removed; lists of Variables hold bounds of run time",
    "x[...]",
)
_role(
    "strided_part",
    "Input StartsTensorList EndsTensorList; axes starts ends strides decrease_axis infer_flags -> Out",
    "As `part`, with a stride along each axis; with a negative stride, an end of -1 is before the first element",
    "x[::step]",
)
_role("shape_of", "Input -> Out", "The dims of Input, as integers", "x.shape[i] of an open dim in a captured function")
_role("elements_at", "X Index -> Out", "X[Index[..., 0], Index[..., 1], ...]", "x[mask] and x[list]")
_role("replace_rows", "X Ids Updates; overwrite -> Out", "X with rows Ids replaced by Updates", "x[...] = value")
_role("rows_at", "X Index; axis -> Out", "Slices of X at Index along a dim", "method gather")
_role("split_dim", "X; axis num sections -> Out", "Equal parts, or parts of given sizes, along a dim", "method split")
_role("unbind_dim", "X; axis -> Out", "The slices along a dim, without it", "method unbind")

# Along dims -----------------------------------------------------------------------------------------------------------
_ALONG = "; dim reduce_all keep_dim -> Out"
_role("sum_along", f"X{_ALONG}", "The sum over dims", "method sum")
_role("mean_along", f"X{_ALONG}", "The mean over dims", "method mean")
_role("max_along", f"X{_ALONG}", "The largest over dims", "method max")
_role("min_along", f"X{_ALONG}", "The smallest over dims", "method min")
_role("product_along", f"X{_ALONG}", "The product over dims", "method prod")
_role("argmax_along", "X; axis keepdims dtype -> Out", "Where the largest of a dim is", "method argmax")
_role("argmin_along", "X; axis keepdims dtype -> Out", "Where the smallest of a dim is", "method argmin")
_role("softmax_along", "X; axis -> Out", "exp(X) over its sum along a dim", "method softmax")

# Ranks ----------------------------------------------------------------------------------------------------------------
_RANKS = "programs that oprack.parallel.distribute splits"
_role("sum_of_ranks", "X; ring_id -> Out", "The sum of X over the ranks of a ring, on each of them", _RANKS)
_role("rows_of_ranks", "X; ring_id nranks -> Out", "The rows of all ranks of a ring, one after the other", _RANKS)
_role("sum_of_rows_of_ranks", "X; ring_id nranks -> Out", "This rank's part of the rows of the sum", _RANKS)
_role("from_one_rank", "X; ring_id root -> Out", "On all ranks of a ring what the rank `root` has", _RANKS)
