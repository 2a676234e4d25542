"""The collective pack against the conformance suite, and on ranks that are threads against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack import functional as F
from oprack import to_tensor
from oprack.errors import OprackError
from oprack.testing import Conformance, OpCase
from oprack.testing.worlds import ThreadWorld

# On one rank a collective is a copy.
X = np.arange(12, dtype="float32").reshape(3, 4)
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
]


class TestCollective(Conformance):
    pack = "collective"
    cases = ON_ONE_RANK


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
