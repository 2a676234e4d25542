"""Strategy for small nets: blocks that packs bring, one after the other on each other's outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from oprack.desc import OpDesc
from oprack.errors import OprackError
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import PackManager
from oprack.program import Program
from oprack.tensor import LoDTensor
from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.examples.gradient import with_gradients
from oprack.testing.fuzz.examples.reuse import reuse_names
from oprack.testing.fuzz.examples.strategies import hypothesis, st
from oprack.testing.fuzz.examples.value_changes import Draw, change_values
from oprack.testing.fuzz.examples.values import ODD, fresh, lod_of, with_odd
from oprack.testing.fuzz.runs.paths import Paths
from oprack.types import VarType

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

NAMESPACE = "fuzz"
"""Where packs bring blocks: `register.layer("residual", "my_pack.fuzz:residual", namespace="fuzz")`."""

F = TypeVar("F", bound=Callable[..., Any])
_SIZES: Mapping[str, Sequence[int]] = {
    "N": (2, 1, 3, 4, 5),
    "H": (8, 6, 7, 4, 5, 9, 12, 14, 1, 3),
    "W": (8, 6, 7, 4, 5, 9, 12, 11, 1, 3),
    "T": (4, 1, 3, 6, 7, 9),
}
# Now and then: arrays so large that memory is used again, and that threads share the work.
_LARGE: Mapping[str, Sequence[int]] = {"N": (2, 1, 3), "H": (24, 28, 33), "W": (32, 24, 37), "T": (100, 64, 129)}
FORMS: Mapping[str, Sequence[int | str]] = {
    "image": ("N", 0, "H", "W"),
    "rows": ("N", 0),
    "sequence": ("T", 0),
    "steps": ("N", "T", 0),
}
"""What a block takes and gives: dims by letters differ from run to run, 0 is a number of channels that is drawn."""


def block(takes: str = "", gives: str = "") -> Callable[[F], F]:
    """Declare `f(net, x) -> name of its output` a block of nets.

    takes, gives: forms of FORMS; the rows of a "sequence" have a LoD of one level. "": it takes no input (and is called
    with the net alone), or gives none that others go on with.
    """

    def mark(function: F) -> F:
        function.__fuzz_forms__ = (takes, gives)  # type: ignore[attr-defined]
        return function

    return mark


class Net:
    """A program that blocks write. forms: form of each variable that a block may take."""

    def __init__(self, draw: Draw, manager: PackManager) -> None:
        self.program, self.manager = Program(), manager
        self.params: dict[str, Any] = {}
        self.forms: dict[str, str] = {}
        self.rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
        self._draw = draw
        self._feeds: dict[str, tuple[Sequence[int | str], str, bool, str]] = {}
        self._count = 0
        self.static = draw(st.booleans())
        self.large = draw(st.integers(0, 11)) == 11
        self.sizes = [self._drawn_sizes() for _ in range(draw(st.integers(1, 3)))]

    def _drawn_sizes(self) -> dict[str, int]:
        return {
            letter: self._draw(st.sampled_from(sizes)) for letter, sizes in (_LARGE if self.large else _SIZES).items()
        }

    # Choices ----------------------------------------------------------------------------------------------------------
    def choose(self, *options: Any) -> Any:
        """One of the options; the first is the plainest."""
        return self._draw(st.sampled_from(options))

    def integer(self, low: int, high: int) -> int:
        """low <= number <= high."""
        return int(self._draw(st.integers(low, high)))

    def flag(self) -> bool:
        """True or False; False is the plainer one."""
        return bool(self._draw(st.booleans()))

    # Variables --------------------------------------------------------------------------------------------------------
    @property
    def block(self) -> Any:
        return self.program.current_block()

    def name(self, prefix: str = "v") -> str:
        """A name that is not taken."""
        self._count += 1
        return f"{prefix}{self._count}"

    def feed(self, dims: Sequence[int | str], dtype: str = "float32", lod: bool = False, fill: str = "uniform") -> str:
        """An input. dims: letters of _SIZES differ from run to run. lod: sequences over the first dim."""
        name = self.name("x")
        self._feeds[name] = (tuple(dims), dtype, lod, fill)
        shape = [d if isinstance(d, int) else self.sizes[0][d] if self.static else -1 for d in dims]
        self.program.global_block().create_var(name, dtype=dtype, shape=shape, lod_level=int(lod))
        return name

    def param(self, shape: Sequence[int], dtype: str = "float32", fill: str = "uniform") -> str:
        """A parameter with values of a kind of `values.FILLS`."""
        name = self.name("w")
        self.params[name] = LoDTensor(fresh(self.rng, shape, dtype, fill))
        self.program.global_block().create_var(name, dtype=dtype, shape=shape, persistable=True)
        return name

    def op(self, op_type: str, inputs: Mapping[str, Any], attrs: Mapping[str, Any] | None = None, out: str = "") -> str:
        """Append an op; returns the name of its output slot `out` (default: the first). Outputs get names of their own.

        Attributes that the op does not have are left out.
        """
        info = self.manager.op_info(op_type)
        slots = {s: [names] if isinstance(names, str) else list(names) for s, names in inputs.items()}
        outputs = {s: [self.name()] for s, p in info.proto.outputs.items() if s == out or not p.dispensable}
        self.append(op_type, slots, outputs, attrs)
        return outputs[out or next(iter(outputs))][0]

    def append(
        self,
        op_type: str,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        attrs: Mapping[str, Any] | None = None,
    ) -> OpDesc:
        """Append an op that writes given names, which are created where there are none."""
        info = self.manager.op_info(op_type)
        types = {k: info.proto.attrs[k].type for k in attrs or {}}
        op: OpDesc = self.block.append_op(OpDesc(op_type, inputs, outputs, attrs, types))
        for name in op.output_arg_names():
            if self.block.find_var_recursive(name) is None:
                self.block.create_var(name)
        infer_op(op, self.block, info)
        return op

    def shape(self, name: str) -> tuple[int, ...]:
        """Declared dims, -1 for those that differ from run to run."""
        return tuple(self.block.var(name).shape or ())

    def channels(self, name: str) -> int:
        """The second dim of an image, the last one of other forms."""
        shape = self.shape(name)
        return shape[1] if len(shape) == 4 else shape[-1]

    def another(self, like: str) -> str:
        """A variable of the same form and dims, which may be the same one."""
        shape, form = self.shape(like), self.forms.get(like)
        names = [n for n, f in self.forms.items() if f == form and self.shape(n) == shape]
        return str(self.choose(*reversed(names))) if names else like

    # The example ------------------------------------------------------------------------------------------------------
    def example(self) -> Example:
        """What was written, with values for every run."""
        runs = [{n: self._value(*spec, sizes) for n, spec in self._feeds.items()} for sizes in self.sizes]
        read = {n for b in self.program.blocks for op in b.ops for n in op.input_arg_names()}
        results = self._results()
        fetch = [n for n in results if n not in read] or results[-1:]
        more = [n for n in results if n in read]
        if more and self.integer(0, 4) == 4:
            fetch.append(self.choose(*more))
        return Example(self.program, self.params, runs, fetch, label="net")

    def _results(self) -> list[str]:
        """What block 0 computes and a path may be asked for: no intermediate outputs, which passes may leave out."""
        root = self.program.global_block()
        written = dict.fromkeys(n for op in root.ops for n in op.output_arg_names())
        intermediate = {n for op in root.ops for n in self._intermediate(op)}
        kept = {VarType.LOD_TENSOR, VarType.LOD_TENSOR_ARRAY}
        return [n for n in written if n not in intermediate and root.var(n).type in kept]

    def _intermediate(self, op: OpDesc) -> list[str]:
        protos = self.manager.op_info(op.type).proto.outputs
        return [n for s, names in op.outputs.items() for n in names if protos[s].intermediate]

    def _value(
        self, dims: Sequence[int | str], dtype: str, lod: bool, fill: str, sizes: Mapping[str, int]
    ) -> LoDTensor:
        shape = [d if isinstance(d, int) else sizes[d] for d in dims]
        array = fresh(self.rng, shape, dtype, fill)
        if not lod:
            return LoDTensor(array)
        empty = [where for where in ("first", "middle", "last") if self.integer(0, 5) == 5]
        return LoDTensor(array, [lod_of(self.rng, shape[0], self.integer(1, 3), empty)], check=False)


def blocks(manager: PackManager) -> dict[str, Any]:
    """The blocks that packs in use bring, by name."""
    return {name: manager.layer(NAMESPACE, name) for name in manager.layer_names(NAMESPACE)}


def net_examples(manager: PackManager, names: Sequence[str] = ()) -> SearchStrategy[Example]:
    """Examples of nets of one to five blocks. names: of the blocks; default: all that packs bring."""
    known = blocks(manager)
    chosen = {n: known[n] for n in (names or known)}
    paths = Paths(manager)

    @st.composite
    def examples(draw: Draw) -> Example:
        try:
            return _example(draw, chosen, paths)
        except OprackError:  # a shape rule refuses what a block appends to dims that are stated
            raise hypothesis().errors.UnsatisfiedAssumption from None

    return examples()


def _example(draw: Draw, known: Mapping[str, Any], paths: Paths) -> Example:
    net = Net(draw, paths.manager)
    labels = []
    for _ in range(draw(st.integers(1, 5))):
        forms = set(net.forms.values())
        usable = [n for n, f in known.items() if not forms or f.__fuzz_forms__[0] in forms or not f.__fuzz_forms__[0]]
        name = draw(st.sampled_from(usable))
        takes, gives = known[name].__fuzz_forms__
        if not takes:
            made = known[name](net)
        else:
            inputs = [n for n, form in net.forms.items() if form == takes]
            recent = draw(st.sampled_from(list(reversed(inputs)))) if inputs else _input(net, takes)
            made = known[name](net, recent)
        if gives and made is not None:
            net.forms[made] = gives
        labels.append(name)
    example = net.example()
    example.label = "net " + " ".join(labels)
    return _altered(draw, net, example, paths)


def _input(net: Net, form: str) -> str:
    channels = net.choose(*(16, 32, 24, 48) if net.large else (4, 3, 1, 2, 6, 8, 16))
    name = net.feed([channels if d == 0 else d for d in FORMS[form]], lod=form == "sequence")
    net.forms[name] = form
    return name


def _altered(draw: Draw, net: Net, example: Example, paths: Paths) -> Example:
    """Now and then: names used again, gradients, or values that no net has on purpose."""
    kind = draw(st.integers(0, 9))
    if kind == 9:
        return with_gradients(example, net.rng, paths)
    if kind == 8:
        reuse_names(example.program, set(example.fetch), net.choose)
    elif kind in (5, 6, 7) and example.params:
        change = draw(st.sampled_from(["dtype", "dim", "odd", "fill", "dtype"]))
        changed = change_values(draw, net.rng, example.params, change)
        for name, value in changed.items():
            if value is not example.params[name]:
                example.program.global_block().create_var(name, dtype=value.dtype, shape=value.shape)
        example.params = changed
    elif kind == 4 and example.runs[0]:
        name = draw(st.sampled_from(list(example.runs[0])))
        run = draw(st.sampled_from(example.runs))
        with contextlib.suppress(KeyError):
            array = with_odd(net.rng, run[name].array, draw(st.sampled_from(ODD)), 0.05)
            run[name] = LoDTensor(array, run[name].lod, check=False)
    return example
