"""What the tests of this plugin share."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from oprack.packs.manager import default_manager
from oprack.testing.fuzz import without_size_limits
from oprack_onednn import kernels
from oprack_onednn.dnnl.library import LIBRARY


@pytest.fixture(autouse=True)
def library():
    """oneDNN, or a skipped test where it does not serve."""
    if not LIBRARY.usable():
        pytest.skip(f"oneDNN does not serve: {LIBRARY.problem}")
    return LIBRARY


@pytest.fixture
def any_size():
    """Small tensors go to oneDNN, too."""
    with without_size_limits(default_manager()):
        yield


@pytest.fixture
def constants(monkeypatch):
    """Parameters that an Executor may train count as constants, as those of a predictor."""
    for _, name, _ in pkgutil.iter_modules(kernels.__path__, kernels.__name__ + "."):
        if hasattr(importlib.import_module(name), "is_constant"):
            monkeypatch.setattr(f"{name}.is_constant", lambda array: True)


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "primitives(kind, ...): oneDNN makes a chain of each kind, and refuses none of them"
    )


@pytest.fixture(autouse=True)
def primitives(request, monkeypatch):
    """A test that is marked with kinds of chains fails when NumPy computes in oneDNN's place."""
    marker = request.node.get_closest_marker("primitives")
    if marker is None:
        yield
        return
    from oprack_onednn.chain.thread import Thread

    made, refused, find = set(), [], Thread.primitive

    def primitive(self, key, build, *args):
        found = find(self, key, build, *args)
        if key[0] in marker.args:
            made.add(key[0]) if found is not None else refused.append(key)
        return found

    monkeypatch.setattr(Thread, "primitive", primitive)
    yield
    assert not refused, "oneDNN refused these"
    assert made == set(marker.args), "oneDNN made no such chains"
