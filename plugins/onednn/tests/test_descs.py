"""What is made once: descriptors of primitives, attributes, and memory objects at one place."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from oprack.cache import Cache, cache_info
from oprack_onednn.chain import descs
from oprack_onednn.chain.descs import cached_desc, primitive_desc
from oprack_onednn.chain.primitive_chain import BoundChain, PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, MemoryDesc
from oprack_onednn.dnnl.operands import OperandError
from oprack_onednn.kernels.matmul import find_product


@pytest.fixture(autouse=True)
def opened():
    THREAD.open()


def copied(rows, columns=8, post_ops=()):
    """A descriptor of a copy of [rows, columns] into column-major memory."""
    source, target = MemoryDesc.strided((rows, columns)), MemoryDesc.strided((rows, columns), (1, rows))
    engine = LIBRARY.engine
    return primitive_desc("reorder", source, engine, target, engine, Attributes(post_ops), any_speed=True)


def test_the_same_request_gets_the_same_descriptor():
    assert copied(5) is copied(5)
    assert copied(5) is not copied(6)
    assert copied(5) is not copied(5, post_ops=[("sum", 1.0)])
    assert copied(5).primitive() is copied(5).primitive()


def test_a_number_of_threads_and_a_python_thread_have_their_own():
    first = copied(5)
    with THREAD.limited(THREAD.threads + 1):
        THREAD.ready()
        assert copied(5) is not first
    THREAD.ready()
    assert copied(5) is first
    found = []

    def other():
        THREAD.ready()
        found.append(copied(5))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found[0] is not first


def test_a_refusal_is_remembered():
    asked = []

    def refuse(number):
        asked.append(number)
        raise NotServedError(f"no {number}")

    for _ in range(2):
        with pytest.raises(NotServedError, match="no 3"):
            cached_desc(refuse, 3)
    assert asked == [3]


def test_few_are_kept(monkeypatch):
    monkeypatch.setattr(descs._CACHE, "descs", Cache(4))
    first = copied(20)
    for rows in range(21, 40):
        copied(rows)
        assert copied(20) is first  # it is always among the four that were used last
        assert len(descs._CACHE.descs) <= 8


def test_attributes_are_told_apart_by_their_operations():
    row, other = MemoryDesc.strided((1, 8)), MemoryDesc.strided((4, 1))
    relu, tanh = ("eltwise", _c.ELTWISE["relu"], 0.0, 0.0), ("eltwise", _c.ELTWISE["tanh"], 0.0, 0.0)
    assert Attributes([relu]) is Attributes([relu])
    different = [[], [relu], [tanh], [relu, tanh], [("binary", _c.BINARY_ADD, row)], [("binary", _c.BINARY_ADD, other)]]
    assert len({Attributes(post_ops) for post_ops in different}) == len(different)


def test_attributes_of_each_size_count_against_the_budget():
    """They hold a descriptor of their operand, of another shape for each size that a net meets."""
    before = cache_info()["kinds"].get("attributes", {"entries": 0, "bytes": 0})
    for rows in range(1, 11):
        Attributes([("binary", _c.BINARY_ADD, MemoryDesc.strided((rows, 3, 5)))])
    after = cache_info()["kinds"]["attributes"]
    assert after["entries"] - before["entries"] == 10
    assert after["bytes"] - before["bytes"] >= 10 * 2_000  # what oneDNN alone takes for them


def rows_of_a_part(chain, given, result, first, rows):
    """Append a copy of `rows` rows of [8, 4] from `first` on, transposed."""
    part = chain.alias(given, MemoryDesc.strided((rows, 4)), 16 * first)
    chain.reorder(part, chain.alias(result, MemoryDesc.strided((rows, 4), (1, 8)), 4 * first))


@pytest.mark.parametrize("fixed", [False, True])
def test_parts_of_external_memory_and_of_scratch_memory(fixed):
    """Twice the same part is one memory object; a part of a part begins at both offsets."""
    chain = PrimitiveChain()
    x, y = chain.input(MemoryDesc.strided((8, 4))), chain.output(MemoryDesc.strided((8, 4), (1, 8)))
    scratch = chain.reorder(x, MemoryDesc.strided((8, 4)))
    rows_of_a_part(chain, x, y, 0, 3)
    rows_of_a_part(chain, scratch, y, 3, 3)
    rest = chain.alias(scratch, MemoryDesc.strided((4, 4)), 16 * 4)
    rows_of_a_part(chain, rest, chain.alias(y, MemoryDesc.strided((4, 4), (1, 8)), 16), 2, 2)
    data = np.arange(32, dtype=np.float32).reshape(8, 4)
    result = np.zeros((4, 8), np.float32).T
    if fixed:
        BoundChain(chain, [data, None]).run(result)
    else:
        chain.run(data, result)
    assert np.array_equal(result, data)
    with pytest.raises(OperandError, match="can't be seen"):
        chain.alias(rest, MemoryDesc.strided((4, 4)), 16)


def test_a_size_that_comes_back_gets_its_primitive_again():
    """Though its chain is gone."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((64, 96), dtype=np.float32)
    w.flags.writeable = False
    steps = []
    for rows in (300, 77, 300):
        x = rng.standard_normal((rows, 64), dtype=np.float32)
        THREAD.primitives.clear()
        found = find_product(x, w, constant=True)
        steps.append(found.chain.steps[-1][0])
        assert np.allclose(found.run(x, w), x.astype(np.float64) @ w, atol=1e-4)
    assert steps[0] is steps[2] and steps[0] is not steps[1]
