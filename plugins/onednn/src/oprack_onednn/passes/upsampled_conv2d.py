"""A convolution over a sum or concatenation of maps, some of them upsampled, reads each at its own resolution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from oprack.ir import Graph, OpNode, VarNode, one_dtype
from oprack.ir.generic import remove_dead_code
from oprack.python.records import dataclass
from oprack_nn.ops.post_ops import RESIDUAL
from oprack_nn.passes.post_ops import precision_attrs

from oprack_onednn.passes.int8 import known_attr

CONVOLUTIONS = ("conv2d", "conv2d_post_ops")
POINTWISE = (*CONVOLUTIONS, "onednn_pointwise_conv2d")
NEAREST = ("nearest_interp", "nearest_interp_v2")
# What bringing a small result to full size costs, counted in multiplications of the convolution per pixel.
_SPREAD = 40


@dataclass(frozen=True)
class Leaf:
    """A map that the convolution reads.

    Attributes:
        channels: Those of Filter that meet it, [first, last).
        node: The map.
        window: Taps of the convolution along a dim, 3 or 1.
        factor: How often each pixel is repeated.
        project, shift, scale: The 1x1 convolution, its bias and the scale of channels that it goes through before.
    """

    node: VarNode
    channels: tuple[int, int]
    window: int
    factor: int = 1
    project: VarNode | None = None
    shift: VarNode | None = None
    scale: VarNode | None = None

    @property
    def cost(self) -> float:
        """Multiplications per pixel and output channel."""
        shape = self.node.shape
        taps = {1: 9, 2: 16}.get(self.factor, 25) if self.window == 3 else 1
        return taps * (shape[1] if shape else 0) / self.factor**2 + (_SPREAD if self.factor > 1 else 0)


def upsampled_conv2d(graph: Graph) -> int:
    """Convolutions that need fewer multiplications so."""
    count = sum(_rewrite(graph, op) for op in reversed(graph.ops) if op.type in CONVOLUTIONS)
    if count:
        remove_dead_code(graph)
    return count


def _rewrite(graph: Graph, op: OpNode) -> bool:
    whole = _as_leaf(graph, op)
    if whole is None:
        return False
    leaves = _best(graph, whole)
    if all(leaf.factor == 1 for leaf in leaves) or _total(leaves) >= whole.cost:
        return False
    slots: dict[str, list[VarNode]] = {"Project": [], "Shift": [], "Scale": []}
    which: dict[str, list[int]] = {"projects": [], "shifts": [], "scales": []}
    for leaf in leaves:
        for (slot, nodes), places in zip(slots.items(), which.values(), strict=True):
            node = getattr(leaf, slot.lower())
            places.append(-1 if node is None else len(nodes))
            nodes += [] if node is None else [node]
    inputs = {
        "X": [leaf.node for leaf in leaves],
        "Filter": _filters(graph, op.inputs["Filter"][0], whole, leaves),
        "Bias": op.inputs.get("Bias", []),
        **slots,
    }
    inputs = {slot: nodes for slot, nodes in inputs.items() if nodes}
    attrs = {"factors": [leaf.factor for leaf in leaves], **which, "post_ops": op.attr("post_ops", [])}
    attrs |= precision_attrs(op)
    graph.add_op("onednn_upsampled_conv2d", inputs, {"Output": op.outputs["Output"]}, attrs, before=op)
    graph.remove_op(op)
    return True


def _as_leaf(graph: Graph, op: OpNode) -> Leaf | None:
    """What a convolution reads, if the pass may rewrite it: constant weights, float32, window 3 or 1."""
    x, w, out = op.input("Input"), op.input("Filter"), op.output("Output")
    if x is None or w is None or out is None or w.shape is None or op.opaque:
        return None
    window = w.shape[-1]
    if window not in (1, 3) or not _is_plain(graph, op, (window, window), window // 2):
        return None
    if RESIDUAL in op.attr("post_ops", []) or out.dtype != "float32" or not one_dtype([*op.reads(), out]):
        return None
    weights = graph.constant_array(w)
    return None if weights is None else Leaf(x, (0, weights.shape[1]), window)


def _filters(graph: Graph, w: VarNode, whole: Leaf, leaves: Iterable[Leaf]) -> list[VarNode]:
    """For each map the weights of its channels: new parameters, but for one that has all of them."""
    weights = graph.constant_array(w)
    filters = {whole.channels: w}
    for leaf in leaves:
        if leaf.channels not in filters and weights is not None:
            first, last = leaf.channels
            filters[leaf.channels] = graph.new_parameter(weights[:, first:last].copy(), w.name)
    return [filters[leaf.channels] for leaf in leaves]


def _total(leaves: tuple[Leaf, ...]) -> float:
    return sum(leaf.cost for leaf in leaves)


def _best(graph: Graph, leaf: Leaf) -> tuple[Leaf, ...]:
    """The cheapest set of maps that give what `leaf` is."""
    best: tuple[Leaf, ...] = (leaf,)
    found = _taken_apart(graph, leaf)
    if found is not None:
        parts = tuple(p for part in found for p in _best(graph, part))
        if _total(parts) <= leaf.cost:
            best = parts
    return best


def _taken_apart(graph: Graph, leaf: Leaf) -> tuple[Leaf, ...] | None:
    """The smaller maps that the op behind a map puts together; None when that op does something else."""
    op = leaf.node.producer
    if op is None or op.opaque or any(graph.is_overwritten(n) for n in (*op.reads(), leaf.node)):
        return None
    if not one_dtype([*op.reads(), leaf.node]):
        return None
    if op.type in NEAREST:
        factor, x = _factor(graph, op), op.input("X")
        if factor is None or x is None or not _dims(x):
            return None
        return (replace(leaf, node=x, factor=leaf.factor * factor),)
    # a map goes through one projection at most, and is scaled before it: what lies above is computed as it stands
    if leaf.project is None and op.type in POINTWISE:
        return _through_projection(graph, op, leaf)
    if leaf.project is None and leaf.scale is None:
        return _combined(graph, op, leaf)
    return None


def _combined(graph: Graph, op: OpNode, leaf: Leaf) -> tuple[Leaf, ...] | None:
    """The maps that a scale, a sum or a concatenation of channels reads."""
    if op.type == "elementwise_mul":
        return next(_scaled(op, leaf), None)
    if op.type == "elementwise_add":
        x, y = op.input("X"), op.input("Y")
        if x is None or y is None or not _dims(x) or _dims(x) != _dims(y) or x.persistable or y.persistable:
            return None
        return (replace(leaf, node=x), replace(leaf, node=y))
    if op.type == "concat" and known_attr(graph, op, "axis") in (1, -3) and not op.input("AxisTensor"):
        return _concatenated(op, leaf)
    return None


def _through_projection(graph: Graph, op: OpNode, leaf: Leaf) -> tuple[Leaf, ...] | None:
    x, w, bias = op.input("Input"), op.input("Filter"), op.input("Bias")
    own = op.input("OutputScale")
    if x is None or w is None or not _dims(x):
        return None
    if op.attr("post_ops", []) or op.input("InputScale") or op.input("Residual"):
        return None
    if graph.constant_array(w) is None or (bias is not None and graph.constant_array(bias) is None):
        return None
    if own is not None and leaf.scale is not None:
        return None
    if op.type != "onednn_pointwise_conv2d" and not _is_plain(graph, op, (1, 1), 0):
        return None
    return (replace(leaf, node=x, project=w, shift=bias, scale=own or leaf.scale),)


def _scaled(op: OpNode, leaf: Leaf) -> Iterator[tuple[Leaf, ...]]:
    """A map times one number per image and channel."""
    for x, y in ((op.input("X"), op.input("Y")), (op.input("Y"), op.input("X"))):
        if x is None or y is None:
            continue
        image, numbers = _dims(x), _dims(y)
        if image and image[2:] != (1, 1) and numbers == (*image[:2], 1, 1):
            yield (replace(leaf, node=x, scale=y),)


def _concatenated(op: OpNode, leaf: Leaf) -> tuple[Leaf, ...] | None:
    first, parts = leaf.channels[0], []
    for x in op.inputs["X"]:
        dims = _dims(x)
        if not dims:
            return None
        parts.append(replace(leaf, node=x, channels=(first, first + dims[1])))
        first += dims[1]
    return tuple(parts)


def _dims(node: VarNode) -> tuple[int, ...]:
    """[N, C, H, W] of images whose C is known; () of anything else."""
    shape = node.shape
    return tuple(shape) if shape is not None and len(shape) == 4 and shape[1] > 0 else ()


def _is_plain(graph: Graph, op: OpNode, window: tuple[int, int], padding: int) -> bool:
    """Whether a convolution has this window, stride 1, and one group."""
    w, x = op.input("Filter"), op.input("Input")
    if w is None or w.shape is None or tuple(w.shape[2:]) != window or x is None or not _dims(x):
        return False
    names = ("strides", "dilations", "groups", "padding_algorithm")
    if [known_attr(graph, op, name) for name in names] != [[1, 1], [1, 1], 1, "EXPLICIT"]:
        return False
    layout = known_attr(graph, op, "data_format") or "NCHW"
    return set(known_attr(graph, op, "paddings")) == {padding} and layout != "NHWC" and not op.input("ResidualData")


def _factor(graph: Graph, op: OpNode) -> int | None:
    """How often nearest-neighbour interpolation repeats each pixel; None when it is no whole number."""
    if any(op.input(slot) is not None for slot in ("OutSize", "SizeTensor", "Scale")):
        return None
    if known_attr(graph, op, "align_corners") or known_attr(graph, op, "data_layout") not in ("NCHW", None):
        return None
    scale = known_attr(graph, op, "scale")
    factors = {float(s) for s in (scale if isinstance(scale, list | tuple) else [scale])}
    if not factors or min(factors) <= 0:
        x, size = op.input("X"), [known_attr(graph, op, "out_h"), known_attr(graph, op, "out_w")]
        spatial = (() if x is None else _dims(x)[2:]) or (-1, -1)
        if min(*spatial, *size) <= 0:
            return None
        factors = {s / n for s, n in zip(size, spatial, strict=True)}
    factor = factors.pop()
    return int(factor) if not factors and factor == int(factor) and factor > 1 else None
