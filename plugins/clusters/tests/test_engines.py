"""Tables on Ray Data, Dask and Spark, and ranks on Ray, each on this machine alone: numbers are those of a loop."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import models
import numpy as np
import oprack
import pytest
from oprack import nn, optimizer, parallel
from oprack.errors import CollectiveError, InvalidArgumentError
from oprack.io import load_state, save_state
from oprack_clusters import BatchPredictor, run_on_ray

pytestmark = [pytest.mark.filterwarnings("ignore")]  # those of the engines
MISSING = "is not installed; `make clusters` runs this"
COUNT = 10_000
OUTPUTS = ("scores", "means")


@pytest.fixture(scope="module")
def net(tmp_path_factory) -> str:
    return models.pictures(tmp_path_factory.mktemp("net"))


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray", reason=f"ray {MISSING}")
    oprack_paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=200 << 20,
        _node_ip_address="127.0.0.1",
        runtime_env={"env_vars": {"PYTHONPATH": oprack_paths}},
    )
    yield ray
    ray.shutdown()


def named(net: str) -> BatchPredictor:
    names = oprack.inference.create_predictor(oprack.inference.Config(net)).get_output_names()
    return BatchPredictor(net, outputs=dict(zip(names, OUTPUTS, strict=True)), batch_size=64)


def check(found, images: np.ndarray, net: str) -> None:
    """Rows of a table with id, scores and means are what a loop gives, a row a run."""
    wanted = models.looped(net, images[:, None].astype("f4"))
    order = np.argsort(np.asarray(found["id"]))
    assert len(order) == len(images)
    for name, rows in zip(OUTPUTS, wanted, strict=True):
        own = np.stack([np.asarray(v) for v in found[name]])[order]
        np.testing.assert_allclose(own, np.concatenate(rows), rtol=1e-5, atol=1e-6)


def test_ten_thousand_pictures_by_ray_data(ray, net):
    pytest.importorskip("ray.data", reason=f"ray[data] {MISSING}")
    images = models.drawn(COUNT)
    table = ray.data.from_numpy(images).rename_columns({"data": "image"}).zip(ray.data.range(COUNT))
    predict = named(net)
    done = table.map_batches(
        BatchPredictor,
        fn_constructor_args=[net],
        fn_constructor_kwargs={"outputs": predict._outputs},
        concurrency=2,
        batch_size=64,
        num_cpus=0.5,
    )
    found = done.to_pandas()
    assert set(found.columns) == {"id", *OUTPUTS}
    check(found, images, net)
    truth = np.argmax(np.stack(found["means"]), 1)
    np.testing.assert_array_equal(truth, np.asarray(found["id"]) % 3)  # of which colour each was drawn


def test_partitions_of_dask(net):
    dd = pytest.importorskip("dask.dataframe", reason=f"dask {MISSING}")
    distributed = pytest.importorskip("distributed", reason=f"distributed {MISSING}")
    import pandas as pd

    images, predict = models.drawn(200), named(net)
    frame = pd.DataFrame({"id": range(200), "image": list(images)})
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as cluster,
        distributed.Client(cluster),
    ):
        import dask

        with dask.config.set({"dataframe.convert-string": False}):
            table = dd.from_pandas(frame, npartitions=5)
            found = table.map_partitions(predict.frame, meta=predict.frame(frame[:0])).compute()
    check(found, images, net)


def test_map_in_pandas_of_spark(net, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason=f"pyspark {MISSING}")
    if not shutil.which("java"):
        pytest.skip("Spark needs a Java virtual machine, and there is none")
    import sys

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    images, predict = models.drawn(60), named(net)
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    spark = builder.config("spark.driver.memory", "512m").getOrCreate()
    try:
        rows = [(k, image.tolist()) for k, image in enumerate(images)]
        table = spark.createDataFrame(rows, "id bigint, image array<array<array<int>>>").repartition(2)
        found = table.mapInPandas(predict.frames, schema="id bigint, " + predict.spark_columns()).toPandas()
    finally:
        spark.stop()
    check(found, images, net)


# Ranks on Ray ---------------------------------------------------------------------------------------------------------
def train(folder: str, steps: int, kill_at: int) -> list[float]:
    """Train on rows that ranks share; a rank is killed before a step, once, after others were saved."""
    world = parallel.init()
    oprack.seed(0)
    net = parallel.DataParallel(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)))
    adam = optimizer.Adam(0.05, parameter_list=net.parameters())
    saved, losses, mark = Path(folder, "state.npz"), Path(folder, "losses.json"), Path(folder, "killed")
    first = 0
    if saved.exists():
        state = load_state(saved)
        net.set_state_dict({k[4:]: v for k, v in state.items() if k.startswith("net.")})
        adam.set_state_dict({k[5:]: v for k, v in state.items() if k.startswith("adam.")})
        first = len(json.loads(losses.read_text()))
    for step in range(first, steps):
        if step == kill_at and world.rank == world.size - 1 and world.size > 1 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        x = np.random.default_rng(step).standard_normal((8, 6)).astype("f4")
        mine = x[world.rank :: world.size]
        loss = ((net(oprack.to_tensor(mine)) - oprack.to_tensor(mine.sum(1, keepdims=True))) ** 2).mean()
        loss.backward()
        adam.step()
        adam.clear_grad()
        mean = float(world.all_reduce(np.array([loss.item()]))[0] / world.size)
        if world.rank == 0:
            known = json.loads(losses.read_text()) if losses.exists() else []
            state = {f"net.{k}": v for k, v in net.state_dict().items()}
            save_state(saved, state | {f"adam.{k}": v for k, v in adam.state_dict().items()})
            losses.write_text(json.dumps([*known, mean]))
        world.barrier()
    return [world.rank, world.size, *json.loads(losses.read_text())]


@pytest.mark.parametrize("least", [2, 1])
def test_a_worker_that_is_killed_does_not_change_the_losses(ray, least, tmp_path):
    """The next group goes on from the checkpoint; of one rank where no more fit."""
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    alone.mkdir()
    killed.mkdir()
    wanted = train(str(alone), 8, -1)[2:]
    hogs = []

    def hog() -> None:
        if least == 1:
            holder = ray.remote(num_cpus=1)(Holder).remote()
            ray.get(holder.here.remote())
            hogs.append(holder)

    try:
        if least == 1:
            run_on_ray(train, 2, arguments=[str(killed), 3, -1])  # two ranks make the first steps
            hog()
        found = run_on_ray(train, 2, arguments=[str(killed), 8, 5], least=least, restarts=1, wait=60)
    finally:
        for holder in hogs:
            ray.kill(holder)
    assert (killed / "killed").exists() == (least == 2)
    assert [f[:2] for f in found] == [[r, least] for r in range(least)]
    np.testing.assert_allclose(found[0][2:], wanted, rtol=1e-5)
    assert wanted[-1] < wanted[0]


class Holder:
    """Takes a CPU away, as a node that died does."""

    def here(self) -> bool:
        return True


def broken() -> None:
    world = parallel.init()
    if world.rank == 1:
        raise ZeroDivisionError("one too many")
    world.barrier()


def test_the_rank_that_failed_is_named(ray):
    with pytest.raises(CollectiveError, match=r"rank 1 of 2 failed: (.|\n)*one too many(.|\n)*no restart left of 0"):
        run_on_ray(broken, 2, restarts=0)


def test_ranks_that_do_not_fit_are_refused(ray):
    with pytest.raises(InvalidArgumentError, match="ranks of 1 CPUs fit into the cluster, where 64 are the least"):
        run_on_ray(broken, 64, wait=0.1)
    with pytest.raises(InvalidArgumentError, match="no more as the least than as the most"):
        run_on_ray(broken, 1, least=2)
