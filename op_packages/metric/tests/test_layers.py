"""Layers of metric, against counts by hand."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import LoDTensor, layers
from oprack.errors import InvalidArgumentError


def run(build, times=1, **feed):
    """Arrays after `times` runs in one scope, so that counters go on."""
    main, startup, scope = oprack.Program(), oprack.Program(), oprack.Scope()
    feed = {n: v if isinstance(v, LoDTensor) else LoDTensor(np.asarray(v)) for n, v in feed.items()}
    with oprack.program_guard(main, startup), oprack.unique_name.guard():
        made = build(**{n: layers.data(n, [None, *t.shape[1:]], t.dtype, len(t.lod)) for n, t in feed.items()})
    exe = oprack.Executor()
    exe.run(startup, scope=scope, fetch_list=[])
    for _ in range(times):
        found = exe.run(main, feed=feed, fetch_list=list(made), scope=scope)
    return found


def test_accuracy():
    scores = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [0.2, 0.3, 0.5]], np.float32)
    labels = np.array([[1], [2], [1]])

    def build(x, y):
        correct = layers.create_tensor("int32")
        return [layers.accuracy(x, y, correct=correct), layers.accuracy(x, y, k=2), correct]

    one, two, correct = run(build, x=scores, y=labels)
    assert (one.item(), two.item(), correct.item()) == (pytest.approx(1 / 3), 1.0, 1)


@pytest.mark.parametrize("times", [1, 3])
def test_auc_counts_over_runs(times):
    p = np.array([0.1, 0.4, 0.35, 0.8], np.float32)
    labels = np.array([[0], [0], [1], [1]])

    def build(x, y):
        total, recent, counters = layers.auc(x, y)
        return [total, recent, *counters[:2]]

    found = run(
        build,
        times,
        x=np.stack([1 - p, p], 1),
        y=labels,
    )
    assert found[0].item() == found[1].item() == pytest.approx(0.75)
    assert found[2].sum() == found[3].sum() == 2 * times


def test_chunk_eval():
    tags = LoDTensor(np.array([[0], [1], [4], [2], [3]]), [[0, 3, 5]])
    labels = LoDTensor(np.array([[0], [1], [4], [2], [2]]), [[0, 3, 5]])
    found = run(lambda x, y: layers.chunk_eval(x, y, "IOB", 2), x=tags, y=labels)
    assert [v.item() for v in found] == pytest.approx([1 / 2, 1 / 3, 0.4, 2, 3, 1])


def test_mean_iou():
    found = run(lambda x, y: layers.mean_iou(x, y, 2), x=np.array([0, 1, 1, 1]), y=np.array([0, 1, 0, 1]))
    assert found[0].item() == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert found[2].tolist() == [1, 2]


def test_bad_calls():
    with oprack.program_guard(oprack.Program(), oprack.Program()):
        x, y = layers.data("x", [None, 2]), layers.data("y", [None, 1], "int64")
        with pytest.raises(InvalidArgumentError, match=r"accuracy: label \(variable 'x'\) is float32"):
            layers.accuracy(x, x)
        with pytest.raises(InvalidArgumentError, match="auc: curve is 'PRC'"):
            layers.auc(x, y, "PRC")
