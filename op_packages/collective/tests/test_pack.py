"""The collective pack against the conformance suite, and on ranks that are threads against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack import Executor, LoDTensor, LoDTensorArray, Program, Scope, to_tensor
from oprack import functional as F
from oprack.errors import OprackError
from oprack.testing import Conformance, OpCase
from oprack.testing.worlds import ThreadWorld
from oprack.types import VarType

# On one rank a collective is a copy.
X = np.arange(12, dtype="float32").reshape(3, 4)
COUNTS = np.array([2, 0, 1])
LABELS = np.array([[1], [3], [0]])
SOFTMAX = np.exp(X - X.max(1, keepdims=True)) / np.exp(X - X.max(1, keepdims=True)).sum(1, keepdims=True)
LOSS = np.where(LABELS == 3, 0, -np.log(np.take_along_axis(SOFTMAX, LABELS, 1))).astype("float32")
SAME = [
    *(f"c_allreduce_{k}" for k in ("sum", "max", "min", "prod")),
    *(f"c_reduce_{k}" for k in ("sum", "max", "min", "prod")),
    "c_broadcast",
    "alltoall",
    "c_sync_calc_stream",
]
MANY = ("c_sync_comm_stream", "c_wait_comm", "c_wait_compute")
ON_ONE_RANK = [
    *(OpCase(op, {"X": X}, outputs={"Out": X}) for op in SAME),
    *(OpCase(op, {"X": X}, outputs={"Out": X}, grads=["X"]) for op in ("mp_allreduce_sum", "c_identity")),
    *(OpCase(op, {"X": X}, {"nranks": 1}, {"Out": X}) for op in ("c_allgather", "c_reducescatter")),
    *(OpCase(op, {"X": X}, {"nranks": 1, "rank": 0}, {"Out": X}, grads=["X"]) for op in ("c_concat", "c_split")),
    OpCase("partial_allgather", {"X": X}, {"nranks": 1, "rank": 0}, {"Out": X}),
    OpCase("barrier", {"X": X.astype("int32")}, outputs={"Out": X.astype("int32")}),
    *(
        OpCase(op, {"X": [X, X[:1]]}, outputs={"Out": [X, X[:1]]})
        for op in ("c_sync_comm_stream", "c_wait_comm", "c_wait_compute")
    ),
    OpCase("depend", {"X": X, "Dep": [X[:2].copy()]}, outputs={"Out": X}),
    *(OpCase(op, {"x": X}, outputs={"out": X}) for op in ("all_reduce", "reduce", "broadcast", "all_to_all")),
    *(OpCase(op, {"x": X}, {"nranks": 1}, {"out": X}) for op in ("all_gather", "dist_concat", "reduce_scatter")),
    OpCase("c_scatter", {"X": X}, {"nranks": 1}, {"Out": X}),
    *(
        OpCase(op, {"X": X, "local_count": COUNTS, "global_count": COUNTS}, outputs={"Out": X}, grads=["X"])
        for op in ("global_scatter", "global_gather")
    ),
    OpCase(
        "c_softmax_with_cross_entropy",
        {"Logits": X, "Label": LABELS},
        {"nranks": 1, "ignore_index": 3},
        {"Softmax": SOFTMAX, "Loss": LOSS},
        grads=["Logits"],
    ),
    OpCase(
        "c_softmax_with_cross_entropy_grad",
        {"Softmax": SOFTMAX, "Label": LABELS, "Loss@GRAD": 2 * np.ones((3, 1), "float32")},
        {"nranks": 1, "ignore_index": 3},
        {"Logits@GRAD": 2 * (SOFTMAX - np.eye(4, dtype="float32")[LABELS[:, 0]]) * (LABELS != 3)},
    ),
]


PAIRS = ("send_v2", "recv_v2", "p_send", "p_recv", "p_send_array", "p_recv_array", "partial_send", "partial_recv")
RINGS = (
    "c_comm_init",
    "c_comm_init_all",
    "c_comm_init_multitrainer",
    "c_gen_xccl_id",
    "c_gen_nccl_id",
    "c_gen_bkcl_id",
)


class TestCollective(Conformance):
    pack = "collective"
    cases = ON_ONE_RANK
    without_cases = {
        **dict.fromkeys(PAIRS, "one rank has nobody to send to; the tests below run it"),
        **dict.fromkeys(RINGS, "a ring is seen by the ops on it alone; the tests below run it"),
    }


N = 3
WHOLE = np.random.default_rng(0).integers(-4, 5, (N, 6, 6)).astype("float32")


def on_ranks(op: str, **attrs: Any) -> list[np.ndarray]:
    """What an op gives on each of three ranks, of which rank r has WHOLE[r]."""

    def rank(world: Any) -> np.ndarray:
        own = {k: world.rank if v == "rank" else v for k, v in attrs.items()}
        return getattr(F, op)(to_tensor(WHOLE[world.rank]), **own).numpy()

    return ThreadWorld(N).run(rank)


REDUCED = {"sum": WHOLE.sum(0), "max": WHOLE.max(0), "min": WHOLE.min(0), "prod": WHOLE.prod(0)}


@pytest.mark.parametrize("kind", REDUCED)
def test_reductions(kind: str) -> None:
    for found in on_ranks(f"c_allreduce_{kind}"):
        np.testing.assert_array_equal(found, REDUCED[kind])
    by_rank = on_ranks(f"c_reduce_{kind}", root_id=1)
    np.testing.assert_array_equal(by_rank[1], REDUCED[kind])
    np.testing.assert_array_equal(by_rank[0], WHOLE[0])


@pytest.mark.parametrize(
    ("op", "attrs", "want"),
    [
        ("mp_allreduce_sum", {}, lambda r: WHOLE.sum(0)),
        ("c_identity", {}, lambda r: WHOLE[r]),
        ("c_broadcast", {"root": 2}, lambda r: WHOLE[2]),
        ("c_allgather", {"nranks": N}, lambda r: WHOLE.reshape(-1, 6)),
        ("c_reducescatter", {"nranks": N}, lambda r: WHOLE.sum(0)[2 * r : 2 * r + 2]),
        ("c_concat", {"nranks": N, "rank": "rank"}, lambda r: np.concatenate(list(WHOLE), -1)),
        ("c_split", {"nranks": N, "rank": "rank"}, lambda r: WHOLE[r][:, 2 * r : 2 * r + 2]),
        ("alltoall", {}, lambda r: np.concatenate([w[2 * r : 2 * r + 2] for w in WHOLE])),
        ("c_sync_calc_stream", {}, lambda r: WHOLE[r]),
        (
            "partial_allgather",
            {"nranks": N, "rank": "rank"},
            lambda r: np.concatenate([w.ravel()[12 * k : 12 * k + 12] for k, w in enumerate(WHOLE)]).reshape(6, 6),
        ),
        ("all_reduce", {"reduce_type": 1}, lambda r: WHOLE.max(0)),
        ("reduce", {"reduce_type": 3, "root_id": 2}, lambda r: WHOLE.prod(0) if r == 2 else WHOLE[r]),
        ("broadcast", {"root": 1}, lambda r: WHOLE[1]),
        ("all_gather", {"nranks": N}, lambda r: WHOLE.reshape(-1, 6)),
        ("dist_concat", {"nranks": N}, lambda r: np.concatenate(list(WHOLE), -1)),
        ("reduce_scatter", {"nranks": N}, lambda r: WHOLE.sum(0)[2 * r : 2 * r + 2]),
        ("all_to_all", {}, lambda r: np.concatenate([w[2 * r : 2 * r + 2] for w in WHOLE])),
        ("c_scatter", {"nranks": N, "root": 1}, lambda r: WHOLE[1][2 * r : 2 * r + 2]),
    ],
)
def test_what_moves_between_ranks(op: str, attrs: dict[str, Any], want: Any) -> None:
    for r, found in enumerate(on_ranks(op, **attrs)):
        np.testing.assert_array_equal(found, want(r))


@pytest.mark.parametrize(
    ("op", "attrs", "message"),
    [
        (
            "c_allgather",
            {"nranks": 2},
            "the program was written for 2 ranks, but 3 run; start it with oprack launch -n 2",
        ),
        ("c_allreduce_sum", {"ring_id": 7}, "ring 7 was not opened"),
        ("send_v2", {"peer": 3}, "peer is 3, but .* has 3 ranks; expected 0 to 2"),
        ("c_scatter", {"nranks": 3, "root": 5}, "root is 5"),
    ],
)
def test_what_does_not_fit_the_ranks_is_refused(op: str, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(OprackError, match=message):
        on_ranks(op, **attrs)


def test_gradients_of_tensor_parallel_ops() -> None:
    def rank(world: Any) -> tuple[np.ndarray, np.ndarray]:
        x = to_tensor(WHOLE[world.rank], requires_grad=True)
        (F.c_identity(x) * (world.rank + 1.0)).sum().backward()
        y = to_tensor(WHOLE[world.rank], requires_grad=True)
        (F.mp_allreduce_sum(y) * 5.0).sum().backward()
        return x.grad.numpy(), y.grad.numpy()

    for first, second in ThreadWorld(N).run(rank):
        np.testing.assert_array_equal(first, np.full((6, 6), 6.0))  # 1 + 2 + 3
        np.testing.assert_array_equal(second, np.full((6, 6), 5.0))


def test_softmax_over_classes_that_ranks_share() -> None:
    rng = np.random.default_rng(4)
    scores, labels = rng.standard_normal((2, 5, 6)) * 9, rng.integers(0, 6, (2, 5, 1))
    labels[0, 0] = -100

    def rank(world: Any) -> list[np.ndarray]:
        mine = to_tensor(scores[..., 2 * world.rank : 2 * world.rank + 2].copy(), requires_grad=True)
        softmax, loss = F.c_softmax_with_cross_entropy(mine, to_tensor(labels), rank=world.rank, nranks=N)
        part = to_tensor(of_softmax[..., 2 * world.rank : 2 * world.rank + 2].copy())
        ((loss * to_tensor(weights)).sum() + (softmax * part).sum()).backward()
        return [softmax.numpy(), loss.numpy(), mine.grad.numpy()]

    weights, of_softmax = rng.standard_normal(labels.shape), rng.standard_normal(scores.shape)
    found = ThreadWorld(N).run(rank)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    counts = labels != -100
    want = np.where(counts, -np.log(np.take_along_axis(p, np.where(counts, labels, 0), -1)), 0)
    gradient = (p - (labels == np.arange(6))) * weights * counts
    gradient += p * (of_softmax - (of_softmax * p).sum(-1, keepdims=True))
    np.testing.assert_allclose(np.concatenate([f[0] for f in found], -1), p, rtol=1e-12)
    for f in found:
        np.testing.assert_allclose(f[1], want, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.concatenate([f[2] for f in found], -1), gradient, rtol=1e-12, atol=1e-14)


def test_a_label_that_no_rank_has_is_refused() -> None:
    def rank(world: Any) -> None:
        F.c_softmax_with_cross_entropy(to_tensor(X), to_tensor(LABELS + 9), rank=world.rank, nranks=N)

    with pytest.raises(OprackError, match="Label holds 12; expected 0 to 11, 4 classes on each of 3 ranks"):
        ThreadWorld(N).run(rank)


def test_experts_get_their_rows_and_give_them_back() -> None:
    """Two experts on each of three ranks; row k of rank r for expert e of rank d has 1000 r + 100 d + 10 e + k."""
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 3, (N, N, 2))  # [from, to, expert]
    rows = {
        (r, d, e): np.array([[1000.0 * r + 100 * d + 10 * e + k, 0.5] for k in range(counts[r, d, e])]).reshape(-1, 2)
        for r in range(N)
        for d in range(N)
        for e in range(2)
    }

    def rank(world: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r = world.rank
        x = np.concatenate([rows[r, d, e] for d in range(N) for e in range(2)])
        given, got = to_tensor(counts[r].reshape(-1)), to_tensor(counts[:, r].reshape(-1))
        leaf = to_tensor(x, requires_grad=True)
        there = F.global_scatter(leaf, given, got)
        back = F.global_gather(there, given, got)
        (back * back).sum().backward()
        return there.numpy(), back.numpy(), leaf.grad.numpy()

    for r, (there, back, gradient) in enumerate(ThreadWorld(N).run(rank)):
        np.testing.assert_array_equal(there, np.concatenate([rows[k, r, e] for e in range(2) for k in range(N)]))
        mine = np.concatenate([rows[r, d, e] for d in range(N) for e in range(2)])
        np.testing.assert_array_equal(back, mine)
        np.testing.assert_array_equal(gradient, 2 * mine)


def test_one_rank_sends_to_another() -> None:
    x = np.arange(6, dtype="float32").reshape(2, 3)

    def rank(world: Any) -> list[np.ndarray]:
        if world.rank == 0:
            F.send_v2(to_tensor(x), peer=1)
            F.send_v2(to_tensor(x[:1].copy()), peer=1, dynamic_shape=True)
            F.p_send(to_tensor(x.astype("int64")), peer=1)
            F.partial_send(to_tensor(x), peer=1, num=2, id=1)
            return []
        if world.rank == 2:
            return []
        return [
            F.recv_v2(peer=0, dtype=5, out_shape=[2, 3]).numpy(),
            F.recv_v2(peer=0, dtype=5, out_shape=[-1, 3], dynamic_shape=True).numpy(),
            F.p_recv(peer=0, dtype=3).numpy(),
            F.partial_recv(peer=0, dtype=5, out_shape=[2, 3], num=2, id=1).numpy(),
        ]

    found = ThreadWorld(N).run(rank)[1]
    want = [x, x[:1], x.astype("int64"), np.array([[0, 0, 0], [3, 4, 5]], "float32")]
    for got, wanted in zip(found, want, strict=True):
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype


def ring_program(rank: int, library: str, endpoints: bool) -> Program:
    """Opens ring 5 of this rank and rank 0 or 3, whichever is nearer, and rings of all; sums over ring 5."""
    program = Program()
    block = program.global_block()
    group = ["a:1", "b:1"] if rank < 2 else ["c:1", "d:1"]
    own = group[rank % 2]
    block.create_var("id", type=VarType.RAW, persistable=True)
    block.create_var("x", shape=(2,), dtype=VarType.FP32)
    block.create_var("y", shape=(2,), dtype=VarType.FP32)
    others = [e for e in group if e != own]
    made = {"endpoint": own, "other_endpoints": others, "rank": rank % 2, "ring_id": 5}
    block.append_op(f"c_gen_{library}_id", {}, {"Out": "id"}, made)
    named = {"endpoints": ",".join(group)} if endpoints else {}
    block.append_op("c_comm_init", {"X": "id"}, {}, {"nranks": 2, "rank": rank % 2, "ring_id": 5, **named})
    block.append_op("c_comm_init_all", {}, {}, {"ring_id": 6})
    block.append_op("c_comm_init_multitrainer", {"X": "id"}, {}, {"ntrainers": 4, "trainer_id": rank, "ring_id": 7})
    block.append_op("c_allreduce_sum", {"X": "x"}, {"Out": "y"}, {"ring_id": 5})
    block.append_op("c_allreduce_max", {"X": "y"}, {"Out": "y"}, {"ring_id": 6})
    block.append_op("c_allreduce_sum", {"X": "y"}, {"Out": "y"}, {"ring_id": 7})
    return program


@pytest.mark.parametrize(("library", "endpoints"), [("xccl", True), ("nccl", False), ("bkcl", False)])
def test_programs_open_rings(library: str, endpoints: bool) -> None:
    def rank(world: Any) -> np.ndarray:
        program, executor = ring_program(world.rank, library, endpoints), Executor()
        x = np.array([1.0, 10.0], "float32") * (world.rank + 1)
        first = executor.run(program, feed={"x": x}, fetch_list=["y"], scope=Scope())[0]
        again = executor.run(program, feed={"x": x}, fetch_list=["y"], scope=Scope())[0]
        np.testing.assert_array_equal(first, again)
        return first

    for found in ThreadWorld(4).run(rank):
        np.testing.assert_array_equal(found, [4 * 7.0, 4 * 70.0])  # ranks 2 and 3 have 3 + 4


def test_a_ring_of_more_ranks_than_run_is_refused() -> None:
    def rank(world: Any) -> None:
        Executor().run(ring_program(world.rank, "nccl", True), feed={"x": X[0, :2]}, fetch_list=["y"], scope=Scope())

    with pytest.raises(OprackError, match="written for 2 ranks, but 1 of 3 open this ring"):
        ThreadWorld(3).run(rank)


def test_arrays_of_tensors_are_sent() -> None:
    def array_program(sends: bool) -> Program:
        program = Program()
        block = program.global_block()
        block.create_var("x", type=VarType.LOD_TENSOR_ARRAY, dtype=VarType.FP32)
        if sends:
            block.append_op("p_send_array", {"x": ["x"]}, {}, {"peer": 1})
        else:
            block.append_op("p_recv_array", {}, {"out": "x"}, {"peer": 0, "dtype": 5})
        return program

    def rank(world: Any) -> Any:
        if world.rank == 0:
            arrays = LoDTensorArray([LoDTensor(X), LoDTensor(X[:, :0]), LoDTensor(X[0])])
            return Executor().run(array_program(True), feed={"x": arrays}, scope=Scope())
        return Executor().run(array_program(False), fetch_list=["x"], scope=Scope(), return_numpy=False)[0]

    found = ThreadWorld(2).run(rank)[1]
    for got, want in zip(found, (X, X[:, :0], X[0]), strict=True):
        np.testing.assert_array_equal(got.array, want)


def test_an_array_with_gaps_is_not_sent() -> None:
    def rank(world: Any) -> None:
        if world.rank == 0:
            block = (program := Program()).global_block()
            block.create_var("x", type=VarType.LOD_TENSOR_ARRAY, dtype=VarType.FP32, persistable=True)
            block.append_op("p_send_array", {"x": ["x"]}, {}, {"peer": 1})
            scope = Scope()
            scope.var("x").set(LoDTensorArray([LoDTensor(X), None, LoDTensor(X)]))
            Executor().run(program, scope=scope)

    with pytest.raises(OprackError, match="element 1 of the 3 of x is absent; expected tensors"):
        ThreadWorld(2).run(rank)
