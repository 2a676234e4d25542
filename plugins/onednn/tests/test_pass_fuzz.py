"""Random small nets give the same after any subset of the passes.

Whatever sizes are fed, with operands that occur twice, names that are used again, and parameters of mixed dtypes.
"""

from __future__ import annotations

import random
import warnings

import numpy as np
import oprack
import pytest
from oprack.errors import OprackError
from oprack.ir import optimize, select_passes
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import default_manager

C, SIZE = 8, (6, 8)
UNARY = [
    "relu",
    "relu6",
    "hard_swish",
    "hard_sigmoid",
    "leaky_relu",
    "sigmoid",
    "tanh",
    "swish",
    "gelu",
    "scale",
    "silu",
]
BINARY = ["elementwise_add", "elementwise_mul", "elementwise_sub"]


class Net:
    """A random net of x: its ops, parameters and what is fetched. mixed: some parameters have other dtypes."""

    def __init__(self, seed, mixed):
        self.rng, self.mixed = random.Random(seed), mixed
        self.values = np.random.default_rng(seed)
        self.params, self.ops, self.names = {}, [], ["x"]
        for _ in range(self.rng.randint(3, 12)):
            self.rng.choice(self.KINDS)(self)
        self.fetch = list(dict.fromkeys([self.names[-1], self.rng.choice(self.names[1:])]))

    def param(self, *shape, low=-0.7):
        dtype = self.rng.choice(["float32"] * 7 + ["float64", "int64"]) if self.mixed else "float32"
        name = f"p{len(self.params)}"
        self.params[name] = (self.values.uniform(low, 1.2, shape) * (3 if dtype == "int64" else 1)).astype(dtype)
        return name

    def any(self):
        return self.rng.choice([self.names[-1], self.names[-1], self.rng.choice(self.names)])

    def add(self, op_type, inputs, attrs=None, out="Out", again=True, **outputs):
        """An op whose result has a new name, or one that was used before; none is read before it is written."""
        used = self.names[1:]
        name = self.rng.choice(used) if again and used and self.rng.random() < 0.4 else f"t{len(self.ops)}"
        self.ops.append((op_type, inputs, {out: name} | outputs, attrs or {}))
        if again and name not in self.names:
            self.names.append(name)
        return name

    def convolution(self):
        size, groups = self.rng.choice([1, 1, 3]), self.rng.choice([1, 1, C])
        attrs = {"paddings": [size // 2] * 2, "groups": groups}
        kind = "conv2d" if groups == 1 else "depthwise_conv2d"
        self.add(kind, {"Input": self.any(), "Filter": self.param(C, C // groups, size, size)}, attrs, "Output")

    def transposed(self):
        self.add("conv2d_transpose", {"Input": self.any(), "Filter": self.param(C, C, 1, 1)}, {}, "Output")

    def unary(self):
        kind = self.rng.choice(UNARY)
        attrs = {"scale": self.rng.choice([1.0, 0.5]), "bias": self.rng.choice([0.0, 1.0])} if kind == "scale" else {}
        self.add(kind, {"X": self.any()}, attrs)

    def binary(self):
        x = self.any()
        self.add(self.rng.choice(BINARY), {"X": x, "Y": self.rng.choice([x, self.any()])}, {"axis": -1})

    def constant(self):
        shape, axis = self.rng.choice([((C,), 1), ((C, 1, 1), -1), ((1, C, 1, 1), -1), ((1,), -1)])
        self.add(self.rng.choice(BINARY), {"X": self.any(), "Y": self.param(*shape)}, {"axis": axis})

    def norm(self):
        stats = {"Mean": self.param(C), "Variance": self.param(C, low=0.4)}
        inputs = {"X": self.any(), "Scale": self.param(C), "Bias": self.param(C), **stats}
        outputs = {"MeanOut": stats["Mean"], "VarianceOut": stats["Variance"], "SavedMean": "sm", "SavedVariance": "sv"}
        self.add("batch_norm", inputs, {"is_test": True}, "Y", **outputs)

    def squeeze(self):
        x = self.any()
        s = self.add("pool2d", {"X": x}, {"pooling_type": "avg", "ksize": [1, 1], "adaptive": True}, again=False)
        for _ in range(2):
            s = self.add("conv2d", {"Input": s, "Filter": self.param(C, C, 1, 1)}, {}, "Output", again=False)
        self.add("elementwise_mul", {"X": x, "Y": s}, {"axis": -1})

    def upsampled(self):
        size = self.rng.choice([{"scale": [2.0, 2.0]}, {"out_h": 2 * SIZE[0], "out_w": 2 * SIZE[1]}])
        attrs = {"interp_method": "nearest", "align_corners": False} | size
        up = self.add("nearest_interp_v2", {"X": self.any()}, attrs, again=False)
        inputs = {"Input": up, "Filter": self.param(C, C, 3, 3)}
        y = self.add("conv2d", inputs, {"paddings": [1, 1]}, "Output", again=False)
        self.add("pool2d", {"X": y}, {"pooling_type": "max", "ksize": [2, 2], "strides": [2, 2]})

    def product(self):
        rows = self.add("transpose2", {"X": self.any()}, {"axis": [0, 2, 3, 1]}, again=False)
        y = self.add("matmul_v2", {"X": rows, "Y": self.param(C, C)}, again=False)
        y = self.add("elementwise_add", {"X": y, "Y": self.rng.choice([self.param(C), y, rows])}, again=False)
        y = self.add(self.rng.choice(["gelu", "relu", "softmax"]), {"X": y}, again=False)
        self.add("transpose2", {"X": y}, {"axis": [0, 3, 1, 2]})

    def reshaped(self):
        first, second = (
            self.rng.choice([[0, C, 48], [0, 0, -1]]),
            self.rng.choice([[0, 0, SIZE[0], -1], [-1, C, *SIZE]]),
        )
        flat = self.add("reshape2", {"X": self.any()}, {"shape": first}, again=False, XShape="shape")
        self.add("reshape2", {"X": flat}, {"shape": second}, XShape="shape")

    def joined(self):
        x = self.any()
        both = self.add("concat", {"X": [x, self.rng.choice([x, self.any()])]}, {"axis": 1}, again=False)
        self.add("conv2d", {"Input": both, "Filter": self.param(C, 2 * C, 1, 1)}, {}, "Output")

    KINDS = (
        *[convolution] * 4,
        *[unary] * 3,
        *[binary, constant, norm] * 2,
        *(transposed, squeeze, upsampled, product, reshaped, joined),
    )

    def build(self):
        program, scope = oprack.Program(), oprack.Scope()
        block = program.global_block()
        block.create_var("x", dtype="float32", shape=[-1, C, *SIZE])
        for name, value in self.params.items():
            block.create_var(name, dtype=value.dtype.name, shape=value.shape, persistable=True)
            scope.var(name).set(value)
        for op_type, inputs, outputs, attrs in self.ops:
            for name in outputs.values():
                if not block.has_var(name):
                    block.create_var(name)
            op = block.append_op(op_type, inputs, outputs, attrs)
            try:
                infer_op(op, block, default_manager().op_info(op_type))
            except OprackError:
                pass  # a bad model; running it says so
        return program, scope


def run(program, x, net, scope):
    """What is fetched; None when the program refuses x."""
    try:
        return [np.asarray(t) for t in oprack.Executor().run(program, {"x": x}, net.fetch, scope)]
    except OprackError:
        return None


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("mixed", [False, True], ids=["float32", "mixed"])
@pytest.mark.parametrize("seed", range(40))
def test_random_nets(seed, mixed):
    net = Net(seed, mixed)
    program, scope = net.build()
    every, rng = select_passes(), random.Random(seed)
    chosen = [every, [p for p in every if rng.random() < 0.5], [rng.choice(every)]][seed % 3]
    with warnings.catch_warnings(action="error"):
        done = optimize(program.desc, scope, keep=net.fetch, passes=chosen)
    served = 0
    for n, h, w in ((2, *SIZE), (1, 3, 16), (0, *SIZE), (3, 12, 8)):
        x = np.random.default_rng(n).uniform(-1, 1, (n, C, h, w)).astype("f4")
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            want, got = run(program, x, net, scope), run(done.program, x, net, scope)
        served += want is not None
        for a, b in zip(want or (), (got or ()) if want else (), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            scale = float(np.max(np.abs(a), initial=1e-3, where=np.isfinite(a)))
            if scale > 1e30:
                continue  # what overflows first depends on the order
            np.testing.assert_allclose(b, a, rtol=0, atol=2e-3 * scale, err_msg=str(net.ops))
    assert mixed or served, "no size that was fed suits the net"
