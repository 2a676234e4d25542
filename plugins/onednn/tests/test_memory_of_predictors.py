"""What memory a served net takes: parameters in files, whose pages go once they are packed, and scratch memory."""

from __future__ import annotations

import errno
import gc
import os
import sys

import numpy as np
import oprack
import pytest
from oprack import inference
from oprack.cache import BUDGET
from oprack.inference import parameters
from oprack.io import save_inference_model
from oprack_onednn.c.runner import RUNNER
from oprack_onednn.chain.memory import BUFFERS, scratch
from oprack_onednn.dnnl.library import LIBRARY

LIBRARY.usable()
pytestmark = [
    pytest.mark.skipif(RUNNER.run is None, reason=f"the runner is not there: {RUNNER.problem}"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what memory a process has"),
]


def resident(kind, part=""):
    """Bytes of one kind that are resident, in all mappings or those of a file whose path has `part`."""
    total, counts = 0, not part
    with open("/proc/self/smaps", encoding="utf-8", errors="replace") as file:
        for line in file:
            name, *values = line.split()
            if not name.endswith(":"):
                counts = part in line
            elif counts and name == f"{kind}:":
                total += 1024 * int(values[0])
    return total


def saved(folder, net):
    main, startup = oprack.Program(), oprack.Program()
    with oprack.program_guard(main, startup):
        y = net(oprack.layers.data("x", [None, 256, None, None]))
    scope, executor = oprack.Scope(), oprack.Executor(seed=3)
    executor.run(startup, scope=scope)
    save_inference_model(str(folder / "net"), main, ["x"], [y.name], scope)
    return folder / "net"


def heavy(x):
    """Two convolutions with 14 MB of filters."""
    y = oprack.layers.conv2d(x, 512, 3, padding=1, act="relu")
    return oprack.layers.batch_norm(oprack.layers.conv2d(y, 512, 3, padding=1, stride=2), is_test=True)


def narrowing(x):
    """Large maps, and a small result."""
    y = oprack.layers.conv2d(x, 64, 3, padding=1, act="relu")
    y = oprack.layers.pool2d(oprack.layers.conv2d(y, 32, 3, padding=1, stride=2, act="relu"), 2, "max", 2)
    return oprack.layers.conv2d(y, 4, 1)


@pytest.fixture
def model(tmp_path):
    return saved(tmp_path, heavy)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Where files of parameters are made."""
    (tmp_path / "files").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "files"))
    return tmp_path / "files"


def predictor_of(model, memory_optim=True):
    config = inference.Config(f"{model}.pdmodel", f"{model}.pdiparams")
    config.enable_memory_optim(memory_optim)
    return inference.create_predictor(config)


def image(size):
    return np.random.default_rng(size).standard_normal((1, 256, size, size), dtype=np.float32)


def results(predictor):
    """Those of a few sizes, each in its first run and in a later one."""
    return [predictor.run([image(size)])[0] for size in (12, 12, 20, 12, 20)]


def arrays_of(predictor):
    scope = predictor._parameters
    return [scope.get_var(name).get().array for name in scope.local_var_names()]


def test_parameters_lie_in_a_file_without_a_name_and_their_pages_go_once_they_are_packed(model, folder):
    want, predictor = results(predictor_of(model, False)), predictor_of(model)
    large = [a for a in arrays_of(predictor) if a.nbytes >= 1 << 16]
    assert sum(a.nbytes for a in large) > 9 << 20 and not any(a.flags.owndata or a.flags.writeable for a in large)
    assert all(a.flags.owndata and not a.flags.writeable for a in arrays_of(predictor) if a.nbytes < 1 << 16)
    assert not any(folder.iterdir())
    before = [a.copy() for a in large]
    assert resident("Rss", str(folder)) > 8 << 20
    for got, expected in zip(results(predictor), want, strict=True):
        np.testing.assert_array_equal(got, expected)
    assert resident("Rss", str(folder)) < 2 << 20
    assert all((a == b).all() for a, b in zip(large, before, strict=True))
    clone = predictor.clone()
    np.testing.assert_array_equal(clone.run([image(28)])[0], predictor.run([image(28)])[0])


def test_a_model_whose_files_are_cut_short_runs_on(model):
    want, predictor = results(predictor_of(model, False)), predictor_of(model)
    for suffix in (".pdmodel", ".pdiparams"):
        os.truncate(f"{model}{suffix}", 0)
    for got, expected in zip(results(predictor), want, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_files_and_pages_are_gone_with_the_last_predictor(model, folder):
    gc.collect()
    fds = len(os.listdir("/proc/self/fd"))
    predictor = predictor_of(model)
    clone = predictor.clone()
    assert resident("Size", str(folder)) > 0 and len(os.listdir("/proc/self/fd")) == fds + 1
    del predictor
    assert clone.run([image(12)])[0].any()
    del clone
    gc.collect()
    assert resident("Size", str(folder)) == 0 and len(os.listdir("/proc/self/fd")) == fds


def test_more_parameters_than_one_file_has_room_for(model, folder, monkeypatch):
    want = results(predictor_of(model, False))
    monkeypatch.setattr(parameters, "_ROOM", 1 << 20)
    predictor = predictor_of(model)
    assert len({id(a.base) for a in arrays_of(predictor) if not a.flags.owndata}) > 1
    for got, expected in zip(results(predictor), want, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("written", [0, 1])
def test_parameters_stay_in_memory_where_the_disk_is_full(model, monkeypatch, written):
    want, write = results(predictor_of(model, False)), os.pwrite
    calls = []

    def pwrite(fd, data, offset):
        calls.append(offset)
        if len(calls) > written:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[: len(data) // 2 or 1], offset)  # as a call that was interrupted

    monkeypatch.setattr(os, "pwrite", pwrite)
    predictor = predictor_of(model)
    assert len(calls) == written + 1 and all(a.flags.owndata for a in arrays_of(predictor))
    for got, expected in zip(results(predictor), want, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_parameters_stay_in_memory_where_there_is_no_folder(model, folder, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(folder / "none"))
    assert all(a.flags.owndata for a in arrays_of(predictor_of(model)))


def test_a_first_run_leaves_no_buffers_of_ops_that_ran_one_by_one(tmp_path, monkeypatch):
    predictor, x, taken, give_back = predictor_of(saved(tmp_path, narrowing)), image(96), [], BUDGET.give_back
    monkeypatch.setattr(BUDGET, "give_back", lambda: (taken.append(BUFFERS._total), give_back()))
    gc.collect()
    assert predictor.try_shrink_memory() >= 0
    predictor.run([x])
    assert taken[1] - BUFFERS._total >= 64 * 96 * 96 * 4 and len(taken) == 2
    for _ in range(2):
        predictor.run([x])
    assert len(taken) == 2


def test_memory_that_is_kept_for_the_next_run_is_given_back_on_demand(model):
    predictor = predictor_of(model)
    for _ in range(3):
        predictor.run([image(96)])
    predictor.get_output_handle(predictor.get_output_names()[0])._slot.array = None
    assert predictor.try_shrink_memory() >= 512 * 48 * 48 * 4 and predictor.run([image(96)])[0].any()


def test_a_run_writes_its_results_to_the_memory_of_the_last_ones(model):
    predictor = predictor_of(model)
    handle, output = predictor.get_input_handle("x"), predictor.get_output_handle(predictor.get_output_names()[0])
    handle.copy_from_cpu(image(96))
    for _ in range(3):
        predictor.run()
    taken, found = BUFFERS._total, output.copy_to_cpu()
    for _ in range(3):
        predictor.run()
    assert BUFFERS._total == taken < 2 << 23
    np.testing.assert_array_equal(output.copy_to_cpu(), found)


def test_scratch_memory_goes_back_to_the_system_wherever_it_lay():
    before = resident("Anonymous")
    pieces = [scratch(16 << 20) for _ in range(4)]
    for piece in pieces:
        piece[:] = 1
    assert resident("Anonymous") - before > 60 << 20
    del pieces[:3], piece
    assert resident("Anonymous") - before < 24 << 20
