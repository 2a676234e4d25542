"""Checkpointer: what ranks in some layout wrote, others read in another; killed and altered ones; files for others."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import nn, optimizer, parallel
from oprack.checkpoint import MANIFEST, save_checkpoint
from oprack.checkpoint.manifest import seal, unseal
from oprack.errors import (
    CheckpointBusyError,
    CheckpointError,
    CheckpointMismatchError,
    CorruptCheckpointError,
    CorruptParameterError,
    InvalidArgumentError,
    NotFoundError,
)
from oprack.io import load_state, save_state
from oprack.layers import unique_name
from oprack.parallel.training import checkpointer, part_updates, pieces
from oprack.testing.worlds import ThreadWorld

safetensors = pytest.importorskip("safetensors.numpy")

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 6)).astype("float32")
LABELS = RNG.integers(0, 5, (12, 1))


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 10), nn.LayerNorm(10), nn.ReLU(), nn.Linear(10, 5))


@pytest.fixture(scope="module")
def start() -> dict[str, np.ndarray]:
    oprack.seed(3)
    return {name: value.numpy() for name, value in net().state_dict().items()}


def setting(
    kind: str, world: parallel.Communicator, start: dict[str, np.ndarray]
) -> tuple[Any, Any, Callable[[], float]]:
    """A net, its optimizer and a step on all rows, each time with other layouts."""
    with unique_name.guard():
        module = net()
    module.set_state_dict(start)
    rate = optimizer.lr.StepDecay(0.05, step_size=2, gamma=0.5)
    clip = optimizer.ClipGradByGlobalNorm(1.0)
    adam = optimizer.Adam(rate, parameters=module.named_parameters(), grad_clip=clip)
    forward = module
    if kind == "zero":
        adam = parallel.Zero(adam, stage=2, bucket_mb=1e-4)
    elif kind == "plain":
        forward = parallel.DataParallel(module)

    def loss_of(x: Any, labels: Any) -> Any:
        return F.softmax_with_cross_entropy(forward(x), labels).loss.mean()

    def stepped(loss: Any) -> float:
        loss.backward()
        adam.step()
        adam.clear_grad()
        rate.step()
        return float(loss.numpy())

    if kind in ("grid", "line"):
        shape = (2, world.size // 2) if kind == "grid" else (1, world.size)
        grid = parallel.placement("cpu", shape=shape, axes=("data", "tensor"))
        layouts = {"0.weight": ["B", "S(1)"], "0.bias": ["B", "S(0)"], "3.weight": ["S(1)", "S(0)"]}
        parallel.to_global(module, grid, layouts)
        whole = [oprack.to_tensor(a).to_global(grid, ["S(0)", "B"], from_whole=True) for a in (X, LABELS)]
        return module, adam, lambda: stepped(loss_of(*whole))
    rows = slice(world.rank, None, world.size)

    def step() -> float:
        mine = stepped(loss_of(oprack.to_tensor(X[rows]), oprack.to_tensor(LABELS[rows])))
        return float(world.all_reduce(np.array([mine]))[0]) / world.size

    return module, adam, step


def trained(
    kind: str, ranks: int, start: Any, path: Path, steps: int = 3, asynchronous: bool = False
) -> tuple[Any, Any]:
    """(what load found, losses) of so many steps from the checkpoint that is there, and a checkpoint of them."""

    def rank(world: parallel.Communicator) -> tuple[Any, Any]:
        module, adam, step = setting(kind, world, start)
        checkpoints = parallel.Checkpointer(path, asynchronous=asynchronous)
        found = checkpoints.load({"net": module, "adam": adam})
        losses = [step() for _ in range(steps)]
        checkpoints.save(steps, {"net": module, "adam": adam}, {"ranks": [world.size]})
        checkpoints.wait()
        return found, losses

    return ThreadWorld(ranks).run(rank)[0]


@pytest.fixture(scope="module")
def wanted(start, tmp_path_factory) -> list[float]:
    return trained("plain", 1, start, tmp_path_factory.mktemp("wanted"), 6)[1]


@pytest.mark.parametrize(
    ("kind", "ranks", "others", "number"),
    [
        ("plain", 1, "zero", 4),
        ("zero", 3, "line", 2),
        ("line", 3, "grid", 4),
        ("grid", 4, "plain", 2),
    ],
)
def test_training_goes_on_in_another_layout(kind, ranks, others, number, start, wanted, tmp_path):
    nothing, first = trained(kind, ranks, start, tmp_path, asynchronous=number % 2 == 0)
    assert nothing is None
    found, second = trained(others, number, start, tmp_path)
    assert (found.step, found.extra, found.path.name) == (3, {"ranks": [ranks]}, "ckpt-1")
    np.testing.assert_allclose(first + second, wanted, rtol=2e-6)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["ckpt-1", "ckpt-2", "latest"]


def test_each_piece_is_written_once_and_others_read_the_files(start, tmp_path):
    trained("line", 3, start, tmp_path)
    files = sorted((tmp_path / "ckpt-1").glob("*.safetensors"))
    assert [f.name for f in files] == [f"part-{k:05}-of-00003.safetensors" for k in range(3)]
    parts = [safetensors.load_file(f) for f in files]
    columns = [part["net.0.weight"] for part in parts]
    assert [c.shape for c in columns] == [(6, 4), (6, 3), (6, 3)]
    assert sum("net.1.weight" in part for part in parts) == 1  # whole on each rank
    body = unseal(tmp_path / "ckpt-1" / MANIFEST, checkpointer._objection)
    assert sum(a.nbytes for part in parts for a in part.values()) == sum(
        np.dtype(t["dtype"]).itemsize * int(np.prod(t["shape"])) for t in body["tensors"].values()
    )
    module = net()
    parallel.Checkpointer(tmp_path).load({"net": module})
    np.testing.assert_array_equal(np.concatenate(columns, axis=1), module[0].weight.numpy())


def test_spans_of_elements_are_regions():
    for _ in range(300):
        shape = tuple(RNG.integers(1, 5, RNG.integers(0, 4)).tolist())
        x = np.arange(int(np.prod(shape))).reshape(shape)
        start, stop = np.sort(RNG.integers(0, x.size + 1, 2)).tolist()
        found = [
            x[(*[slice(*r) for r in region], ...)].reshape(-1) for region in part_updates.boxes(shape, start, stop)
        ]
        np.testing.assert_array_equal(np.concatenate([x.reshape(-1)[:0], *found]), np.arange(start, stop))


def test_a_rank_reads_no_more_than_its_rows(start, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointer, "_CHECKED", 80)  # two rows of 10 float32
    big = nn.Linear(40, 10)
    parallel.Checkpointer(tmp_path).save(1, {"net": big})
    read: list[int] = []
    plain = checkpointer.TensorFile.read
    monkeypatch.setattr(
        checkpointer.TensorFile, "read", lambda self, name, rows=None: read.append(rows) or plain(self, name, rows)
    )

    def rank(world: parallel.Communicator) -> None:
        with nn.deferred():
            mine = nn.Linear(40, 10)
        parallel.to_global(mine, parallel.placement(), {"weight": "split(0)"})
        parallel.Checkpointer(tmp_path).load({"net": mine})
        np.testing.assert_array_equal(mine.weight.to_local().numpy(), big.weight.numpy()[10 * world.rank :][:10])

    ThreadWorld(4).run(rank)
    assert len(read) == 4 * (5 + 1)  # ten rows two by two, and the bias


def test_dropout_goes_on_as_it_would_have(tmp_path):
    drop, checkpoints = nn.Dropout(0.5), parallel.Checkpointer(tmp_path)
    x = oprack.to_tensor(np.ones((4, 4), "float32"))
    drop(x)
    checkpoints.save(1, {"net": nn.Linear(2, 2)})
    wanted = drop(x).numpy()
    oprack.seed(99)
    checkpoints.load({"net": nn.Linear(2, 2)})
    np.testing.assert_array_equal(drop(x).numpy(), wanted)


def test_a_save_that_fails_leaves_the_last_one_and_is_told_by_all_ranks_at_the_next_call(start, tmp_path, monkeypatch):
    trained("zero", 2, start, tmp_path)
    plain = checkpointer.write_tensors

    def failing(file: Any, arrays: Any, metadata: Any) -> None:
        if "part-00001" in file.name:
            raise OSError(28, "No space left on device")
        plain(file, arrays, metadata)

    def slowly(write: Callable[..., int], file: Path, *given: Any, **options: Any) -> int:
        if "part-00001" in file.name:
            file.touch()  # what a file system shows of a file that is being written
            time.sleep(0.2)
        return write(file, *given, **options)

    for name in ("write_text", "write_bytes"):
        write = getattr(Path, name)
        monkeypatch.setattr(Path, name, lambda *given, write=write, **options: slowly(write, *given, **options))

    def rank(world: parallel.Communicator) -> str:
        module, adam, step = setting("zero", world, start)
        checkpoints = parallel.Checkpointer(tmp_path, asynchronous=True)
        checkpoints.load({"net": module, "adam": adam})
        monkeypatch.setattr(checkpointer, "write_tensors", failing)
        checkpoints.save(7, {"net": module, "adam": adam})
        step()
        with pytest.raises(CheckpointError, match="No space left") as error:
            checkpoints.save(8, {"net": module, "adam": adam})
        return str(error.value)

    assert all("part-00001-of-00002: [Errno 28]" in text or "not written" in text for text in ThreadWorld(2).run(rank))
    assert sorted(f.name for f in tmp_path.iterdir()) == ["ckpt-1", "latest"]


def test_what_a_killed_job_left_is_no_checkpoint(start, tmp_path):
    trained("zero", 2, start, tmp_path)
    left = tmp_path / "ckpt-2.tmp"
    shutil.copytree(tmp_path / "ckpt-1", left)
    (left / "part-00001-of-00002.safetensors").write_bytes(b"half")
    found, _ = trained("plain", 1, start, tmp_path, 1)
    assert found.path.name == "ckpt-1"
    assert sorted(f.name for f in tmp_path.iterdir()) == ["ckpt-1", "ckpt-2", "latest"]


def test_old_ones_go(tmp_path):
    checkpoints, module = parallel.Checkpointer(tmp_path, keep=2), nn.Linear(2, 2)
    for step in range(4):
        checkpoints.save(step, {"net": module})
    assert sorted(f.name for f in tmp_path.iterdir()) == ["ckpt-3", "ckpt-4", "latest"]
    assert checkpoints.load({"net": module}, tmp_path / "ckpt-3").step == 2


def test_two_programs_do_not_save_at_once(tmp_path):
    checkpoints = parallel.Checkpointer(tmp_path)
    with checkpointer.locked(tmp_path), pytest.raises(CheckpointBusyError, match="another process or thread saves"):
        checkpoints.save(1, {"net": nn.Linear(2, 2)})


# What is not trusted --------------------------------------------------------------------------------------------------
def altered(tmp_path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = tmp_path / "ckpt-1" / MANIFEST
    body = unseal(path, lambda body: "")
    change(body)
    path.write_bytes(seal(body))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda b: b["tensors"]["net.weight"]["pieces"][0].__setitem__(0, "../../etc/passwd"), "pieces has"),
        (lambda b: b["tensors"]["net.weight"]["pieces"][0].__setitem__(2, [[0, 1 << 62], [0, 2]]), "pieces has"),
        (lambda b: b["tensors"]["net.weight"]["pieces"][0].__setitem__(3, []), "and 0 checksums"),
        (lambda b: b["tensors"]["net.weight"]["pieces"].pop(), "pieces of 0 elements"),
        (lambda b: b["tensors"]["net.weight"]["pieces"][0].__setitem__(1, "net.bias"), "has shape"),
        (lambda b: b["tensors"]["net.weight"].pop("dtype"), "lacks 'dtype'"),
        (lambda b: b.pop("random"), "lacks 'random'"),
        (lambda b: b.__setitem__("step", "3"), "the body.step"),
    ],
)
def test_altered_manifests(change, words, tmp_path):
    checkpoints, module = parallel.Checkpointer(tmp_path), nn.Linear(3, 2)
    checkpoints.save(1, {"net": module})
    altered(tmp_path, change)
    with pytest.raises(CorruptCheckpointError, match=words):
        checkpoints.load({"net": module})


def test_altered_files_are_noticed_by_the_rank_that_reads_them_and_told_by_all(tmp_path):
    module = nn.Linear(3, 2)
    parallel.Checkpointer(tmp_path).save(1, {"net": module})
    path = tmp_path / "ckpt-1" / "part-00000-of-00001.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)

    def rank(world: parallel.Communicator) -> str:
        with pytest.raises(CorruptCheckpointError) as error:
            parallel.Checkpointer(tmp_path).load({"net": nn.Linear(3, 2)} if world.rank else {"net": module})
        return str(error.value)

    assert all("have another checksum" in text for text in ThreadWorld(2).run(rank))
    path.write_bytes(data[:-3])
    with pytest.raises(CorruptCheckpointError, match="no file of safetensors, or it was altered"):
        parallel.Checkpointer(tmp_path).load({"net": module})
    path.unlink()
    with pytest.raises(CorruptCheckpointError, match="is missing"):
        parallel.Checkpointer(tmp_path).load({"net": module})


def test_a_checkpoint_of_something_else(tmp_path):
    checkpoints = parallel.Checkpointer(tmp_path)
    module = nn.Linear(3, 2)
    adam = optimizer.Adam(0.1, parameters=module.named_parameters())
    checkpoints.save(1, {"net": module, "adam": adam})  # of an optimizer that has no state yet
    assert checkpoints.load({"net": module, "adam": adam}).step == 1
    with pytest.raises(CheckpointMismatchError, match=r"weight is float32\[3, 2\], in the module float32\[3, 4\]"):
        checkpoints.load({"net": nn.Linear(3, 4)})
    with pytest.raises(CheckpointMismatchError, match="holds no other; it holds adam, net"):
        checkpoints.load({"other": module})
    with pytest.raises(InvalidArgumentError, match="'it' is a int; expected a module, an optimizer"):
        checkpoints.save(1, {"it": 3})
    with pytest.raises(InvalidArgumentError, match="names without dots"):
        checkpoints.save(1, {"a.b": module})
    with pytest.raises(InvalidArgumentError, match="keep is 0"):
        parallel.Checkpointer(tmp_path, keep=0)
    module(oprack.to_tensor(np.ones((1, 3), "float32"))).sum().backward()
    adam.step()
    checkpoints.save(2, {"net": module, "adam": adam})
    sgd = optimizer.Momentum(0.1, 0.9, parameters=module.named_parameters())
    with pytest.raises(CheckpointMismatchError, match="the state has no name missing; not expected: weight"):
        checkpoints.load({"adam": sgd})
    program = oprack.Program()
    with pytest.raises(CorruptCheckpointError, match="Checkpointer wrote it, and reads it"):
        oprack.io.load_checkpoint(tmp_path, program, oprack.Scope())
    save_checkpoint(tmp_path / "programs", program, oprack.Scope())
    with pytest.raises(CorruptCheckpointError, match="load_checkpoint reads it"):
        parallel.Checkpointer(tmp_path / "programs").load({"net": module})


# States in one file ---------------------------------------------------------------------------------------------------
def test_states_in_files_of_safetensors(tmp_path):
    path = tmp_path / "net.safetensors"
    module = nn.Linear(3, 2)
    half = oprack.to_tensor(np.arange(4.0)).astype("bfloat16")
    given = {**module.state_dict(), "half": half, "none": np.zeros((0, 3)), "scalar": np.float32(2), "step": [3, "x"]}
    save_state(path, given)
    found = load_state(path)
    assert found["step"] == [3, "x"] and found["scalar"].shape == () and found["none"].shape == (0, 3)
    assert found["half"].dtype.name == "bfloat16"
    np.testing.assert_array_equal(found["half"].astype("float32"), np.arange(4.0))
    np.testing.assert_array_equal(found["weight"], module.weight.numpy())
    safetensors.save_file({"weight": np.ones((3, 2), "float32")}, path)  # of others
    np.testing.assert_array_equal(load_state(path)["weight"], np.ones((3, 2)))
    with pytest.raises(InvalidArgumentError, match=r"complex128.*file whose name ends in .npz"):
        save_state(path, {"c": np.ones(2, complex)})
    np.testing.assert_array_equal(load_state(path)["weight"], np.ones((3, 2)))  # the old file is as it was
    path.chmod(0o640)
    oprack.save({"net": module.state_dict(), "epochs": (1, 2)}, path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert oprack.load(path)["epochs"] == (1, 2)
    with pytest.raises(NotFoundError, match="there is no file"):
        load_state(tmp_path / "other.safetensors")


def header(text: str, data: bytes = b"") -> bytes:
    return len(text).to_bytes(8, "little") + text.encode() + data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 16,
        header("{}")[:-1],
        header('{"a": {"dtype": "F32", "shape": [1099511627776, 1099511627776], "data_offsets": [0, 4]}}', b"1234"),
        header('{"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}', b"1234"),
        header('{"a": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}', b"1234"),
        header(json.dumps({"__metadata__": {"__other__": "[" * 9000}})),
        header(json.dumps({"__metadata__": {"__other__": "{}"}})),
        (1 << 60).to_bytes(8, "little") + b"{}",
    ],
)
def test_altered_files_of_safetensors(data, tmp_path):
    path = tmp_path / "net.safetensors"
    path.write_bytes(data)
    with pytest.raises(CorruptParameterError, match=r"net\.safetensors"):
        load_state(path)


def test_pieces_say_what_can_not_be_stored():
    def rank(world: parallel.Communicator) -> None:
        x = oprack.Parameter(np.ones(3, "float32"))
        x._value = np.ones(3, "float32")
        module = nn.Linear(2, 2)
        module.weight = oprack.Parameter(np.ones((2, 2), "float32"))
        parallel.to_global(module, parallel.placement())
        module.weight._meta = parallel.placement().layout("P").meta(module.weight._meta.local)
        pieces.held_by({"net": module})

    with pytest.raises(oprack.errors.UnimplementedError, match="expected splits into even parts"):
        ThreadWorld(2).run(rank)
