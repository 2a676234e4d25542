"""What happens to a server and its models over time: shutdown, reload, versions that come and go, lost processes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import served
from oprack.cli.main import main
from served import Served, arrays, row

X = np.array([[1, 2]], np.float32)


def factor(server, version="") -> float:
    """By what the model scales."""
    status, answer = server.infer("scaled", [row("x", X)], version)
    assert status == 200, answer
    (found,) = arrays(answer).values()
    return found[0, 0].item()


def running(pid: int) -> bool:
    """Whether a process is there, and not only its entry for a parent that does not ask."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    served.save(tmp_path / "scaled" / "1", served.scaled(10.0))
    return tmp_path


def replace(folder: Path, name: str, build) -> None:
    """Write a model beside the old one and move it into its place, as a deployment does."""
    served.save(folder / ".new", build)
    target = folder / name
    if target.exists():
        target.rename(folder / ".old")
    (folder / ".new").rename(target)
    shutil.rmtree(folder / ".old", ignore_errors=True)


def test_changed_models_and_new_versions_are_taken_without_losing_a_request(folder):
    server = Served("--models", str(folder), "--poll", "0.1")
    seen: list[float] = []
    errors: list[int] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            status, answer = server.infer("scaled", [row("x", X)])
            if status == 200:
                seen.append(arrays(answer).popitem()[1][0, 0].item())
            else:
                errors.append(status)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        server.until(lambda: len(seen) > 5)
        replace(folder, "scaled/1", served.scaled(30.0))
        server.until(lambda: seen[-1] == 30)
        served.save(folder / "scaled" / ".2", served.scaled(40.0))
        (folder / "scaled" / ".2").rename(folder / "scaled" / "2")
        server.until(lambda: seen[-1] == 40)
        assert factor(server, "1") == 30
        # a version that can't be loaded leaves the older ones alone
        (folder / "scaled" / "3").mkdir()
        (folder / "scaled" / "3" / "model.pdmodel").write_bytes(b"?")
        server.event("model failed", version="3")
        assert factor(server) == 40
        shutil.rmtree(folder / "scaled" / "2")
        shutil.rmtree(folder / "scaled" / "3")
        server.until(lambda: server.get("/v2/models/scaled")[1]["versions"] == ["1"])
        server.event("model retired", version="2")
        assert factor(server) == 30
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert errors == [] and set(seen) <= {10, 30, 40}
    assert server.metric("oprack_model_reloads_total", model="scaled") == 1
    assert len(served.children(server.process.pid)) == 1
    assert server.stop() == 0
    assert "".join(server.other) == ""


def test_a_host_that_is_killed_is_replaced(folder):
    server = Served("--models", str(folder), "--poll", "0.1")
    (host,) = served.children(server.process.pid)
    os.kill(host, signal.SIGKILL)
    server.event("host ended")
    assert factor(server) == 10
    server.event("model retired")
    assert factor(server) == 10 and host not in served.children(server.process.pid)
    workers = server.workers("scaled")
    assert server.stop() == 0
    server.until(lambda: not any(map(running, workers)), 10)


def test_a_run_that_hangs_gives_its_slot_back_though_its_host_is_gone(folder):
    server = Served("--models", str(folder), "--poll", "0.1", "--timeout", "3")
    (host,), (worker,) = server.hosts("scaled"), server.workers("scaled")
    os.kill(worker, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        hung = pool.submit(server.infer, "scaled", [row("x", X)])
        server.until(lambda: server.metric("oprack_batches_running") == 1)
        os.kill(host, signal.SIGKILL)
        assert hung.result()[0] == 504
    server.until(lambda: not running(worker), 10)
    server.event("model retired")
    assert factor(server) == 10 and server.stop() == 0


def test_a_worker_that_hangs_without_its_host_ends_with_the_server(folder):
    server = Served("--models", str(folder), "--poll", "0", "--workers", "2")
    (host,), hung = server.hosts("scaled"), server.workers("scaled")
    for worker in hung:
        os.kill(worker, signal.SIGSTOP)
    os.kill(host, signal.SIGKILL)
    server.event("host ended")
    assert server.stop() == 0
    server.until(lambda: not any(map(running, hung)), 10)


def test_readiness_is_that_of_a_worker_that_answers(folder):
    server = Served("--models", str(folder), "--poll", "0", "--timeout", "2")
    (host,), (worker,) = server.hosts("scaled"), server.workers("scaled")
    for pid in (host, worker):
        os.kill(pid, signal.SIGSTOP)
    assert server.infer("scaled", [row("x", X)])[0] == 504
    server.until(lambda: server.get("/v2/health/ready")[0] == 503, 10)
    assert server.get("/v2/models/scaled/ready") == (503, {"name": "scaled", "ready": False})
    assert server.get("/v2/health/live")[0] == 200
    os.kill(host, signal.SIGCONT)
    server.until(lambda: server.get("/v2/health/ready")[0] == 200)
    assert factor(server) == 10 and server.stop() == 0


def test_a_worker_that_takes_too_much_memory_is_replaced_without_losing_a_request(folder):
    server = Served("--models", str(folder), "--poll", "0", "--worker-memory", "64K")
    (first,) = server.workers("scaled")

    def replaced() -> bool:
        assert factor(server) == 10
        return not running(first)

    server.until(replaced)
    found = server.event("worker outgrown", pid=first)
    assert found["memory"] > found["limit"] == 64 << 10
    server.event("worker ended", pid=first)
    server.until(lambda: len(server.workers("scaled")) == 1)
    assert server.workers("scaled") != [first] and server.metric("oprack_worker_restarts_total") >= 1
    assert {e["status"] for e in server.events if e["event"] == "request"} == {200} and server.stop() == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_shutdown_finishes_what_runs_and_waits_and_refuses_the_rest(tmp_path, how):
    served.save(tmp_path / "slow", served.slow)
    server = Served(str(tmp_path / "slow"), "--name", "other")
    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(server.infer, "other", [row("n", [n])]) for n in (15_000, 15_001, 15_002)]
        server.until(lambda: server.metric("oprack_queue_length") == 2)
        hosts = served.children(server.process.pid)
        server.process.send_signal(how)
        time.sleep(0.3)
        with pytest.raises(OSError):
            server.get("/v2/health/live")
        for n, answer in zip((15_000, 15_001, 15_002), answers, strict=True):
            status, found = answer.result()
            assert status == 200 and found["outputs"][0]["data"] == [n * (n - 1) // 2]
    assert server.process.wait(20) == 0
    server.stop(0)
    assert server.events[-1]["event"] == "stopped"
    assert not any(map(running, hosts))


def test_the_grace_of_a_shutdown_is_given_once(folder):
    server = Served("--models", str(folder), "--poll", "0", "--grace", "4", "--timeout", "60")
    (worker,) = server.workers("scaled")
    os.kill(worker, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        hung = pool.submit(server.infer, "scaled", [row("x", X)])
        server.until(lambda: server.metric("oprack_batches_running") == 1)
        began = time.monotonic()
        assert server.stop() == 0
        assert 3.9 < time.monotonic() - began < 7.5
        assert hung.result()[0] == 503
    assert not running(worker)


def test_a_server_that_drains_is_not_ready_and_takes_requests(folder):
    server = Served("--models", str(folder), "--poll", "0", "--drain-delay", "5")
    assert server.get("/v2/models/scaled/ready")[0] == 200
    server.process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    server.until(lambda: server.get("/v2/health/ready") == (503, {"ready": False}), 5)
    assert server.get("/v2/models/scaled/ready")[0] == 503 and server.get("/v2/health/live")[0] == 200
    assert factor(server) == 10
    assert server.process.wait(20) == 0 and time.monotonic() - began > 4.9
    server.stop(0)


def test_workers_and_hosts_end_when_the_server_is_killed(folder):
    server = Served("--models", str(folder), "--workers", "2")
    server.until(lambda: len(server.workers("scaled")) == 2)
    pids = [*served.children(server.process.pid), *server.workers("scaled")]
    assert len(pids) == 3 and factor(server) == 10
    server.stop(signal.SIGKILL)

    server.until(lambda: not any(map(running, pids)), 10)


def test_settings_beside_a_model(tmp_path):
    served.save(tmp_path / "image", served.image)
    (tmp_path / "image" / "serve.toml").write_text("max_batch = 1\n[[examples]]\nimage = [5, 3, 8, 8]\n")
    for name, text in (
        ("typo", "max_bach = 1"),
        ("shape", "[[examples]]\nimage = [5, 4, 8, 8]"),
        ("name", "[[examples]]\nx = [1]"),
        ("workers", "workers = 2"),
        ("passes", 'without_passes = ["no_such_pass"]'),
    ):
        shutil.copytree(tmp_path / "image", tmp_path / name)
        (tmp_path / name / "serve.toml").write_text(text)
    server = Served("--models", str(tmp_path))
    assert server.get("/v2/models/image")[1]["parameters"]["max_batch"] == 1
    assert "max_bach; expected max_batch" in server.event("model failed", model="typo")["reason"]
    assert "got shape [5, 4, 8, 8]" in server.event("model failed", model="shape")["reason"]
    assert "the model's inputs are ['image']" in server.event("model failed", model="name")["reason"]
    assert "start it with --workers 2" in server.event("model failed", model="workers")["reason"]
    assert "'no_such_pass'; the passes are" in server.event("model failed", model="passes")["reason"]
    assert server.stop() == 0


def test_rewritten_models_are_kept_where_the_operator_says(tmp_path):
    """The second server makes no new entry, and a changed model makes one."""
    served.save(tmp_path / "models" / "image", served.image)
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    (right,) = served.predict(tmp_path / "models" / "image", x)
    kept: list[set[tuple[str, int]]] = []
    for _ in range(2):
        server = Served("--models", str(tmp_path / "models"), "--cache", str(tmp_path / "cache"), "--poll", "0")
        status, answer = server.infer("image", [row("image", x)])
        assert status == 200 and server.stop() == 0
        np.testing.assert_allclose(arrays(answer).popitem()[1], right.array, rtol=1e-4, atol=1e-5)
        files = [p for p in (tmp_path / "cache").rglob("*") if p.is_file()]
        kept.append({(p.name, p.stat().st_size) for p in files})
    assert kept[0] == kept[1] and kept[0]
    shutil.rmtree(tmp_path / "models" / "image")
    served.save(tmp_path / "models" / "image", served.scaled(3.0))
    server = Served("--models", str(tmp_path / "models"), "--cache", str(tmp_path / "cache"), "--poll", "0")
    assert server.stop() == 0 and len(list((tmp_path / "cache").rglob("*"))) > len(kept[0])


def test_the_log_can_leave_out_requests_that_went_well(folder):
    server = Served("--models", str(folder), "--log", "failed")
    assert factor(server) == 10 and server.infer("nothing", [row("x", X)])[0] == 404
    server.event("request", status=404)
    assert [e["status"] for e in server.events if e["event"] == "request"] == [404] and server.stop() == 0
    assert not server.other


def test_links_that_lead_out_of_the_folder_are_left_out(tmp_path):
    served.save(tmp_path / "elsewhere", served.scaled(1.0))
    served.save(tmp_path / "models" / "good", served.scaled(1.0))
    (tmp_path / "models" / "bad").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "models" / "versions").mkdir()
    (tmp_path / "models" / "versions" / "1").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "models" / "a b").symlink_to(tmp_path / "models" / "good")
    from oprack_serve.repository import scan

    assert {m.name for m in scan(tmp_path / "models")} == {"good", "versions"}
    assert all(m.path.name != "1" for m in scan(tmp_path / "models"))


@pytest.fixture
def unreadable(monkeypatch) -> set[str]:
    """Names of folders that can't be listed; root may list those that have no permissions."""
    names: set[str] = set()
    scandir = os.scandir

    def listed(path):
        if os.path.basename(path) in names:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", listed)
    return names


@pytest.mark.parametrize("which", ["models", "scaled", "1"])
def test_what_cannot_be_read_is_as_it_was(tmp_path, unreadable, which):
    from oprack_serve.repository import scan

    for path in ("models/scaled/1", "models/other"):
        (tmp_path / path).mkdir(parents=True)
    seen = {model.name: model for model in scan(tmp_path / "models")}
    unreadable.add(which)
    told = []

    def as_it_was(name, error):
        told.append(name)
        return [model for model in seen.values() if name in ("", model.name)]

    assert {model.name: model for model in scan(tmp_path / "models", as_it_was)} == seen
    assert told == ["" if which == "models" else "scaled"]
    with pytest.raises(PermissionError):
        scan(tmp_path / "models")


class Loads:
    """A model whose process is none."""

    def __init__(self, found, *_):
        self.found, self.name, self.version, self.state, self.recorded = found, found.name, "1", "READY", None
        self.ready, self.needs = True, []

    async def load(self, recorded):
        pass

    async def drain(self, seconds):
        pass

    async def close(self):
        pass


def test_models_in_a_folder_that_cannot_be_read_stay(tmp_path, unreadable, monkeypatch):
    """Its disk may be away, or descriptors used up. The server is not ready when all models are gone."""
    from oprack_serve import models as module
    from oprack_serve.settings import Settings

    monkeypatch.setattr(module, "Model", Loads)
    (tmp_path / "models" / "scaled").mkdir(parents=True)
    events: list[str] = []

    async def until(true) -> None:
        async with asyncio.timeout(10):
            while not true():
                await asyncio.sleep(0.01)

    async def watch() -> None:
        unreadable.add("models")
        models = module.Models(Settings(models=tmp_path / "models", poll=0.01), lambda event, **_: events.append(event))
        await models.start()
        assert not models.ready
        unreadable.clear()
        await until(lambda: models.ready)
        unreadable.add("models")
        seen = len(events)
        await until(lambda: len(events) > seen + 4)
        assert models.ready and set(models.serving) == {("scaled", "1")}
        unreadable.clear()
        (tmp_path / "models" / "scaled").rmdir()
        await until(lambda: "model retired" in events)
        assert not models.ready and not models.serving
        await models.stop()

    asyncio.run(watch())
    assert set(events) == {"models can't be read", "model retired"}


def test_wrong_command_lines(tmp_path, capsys):
    for arguments, why in (
        ([], "either a MODEL or --models DIR"),
        (["a", "--models", "b"], "either a MODEL or --models DIR"),
        (["--models", str(tmp_path / "none")], "is no folder"),
        ([str(tmp_path / "none")], "there is no model at"),
        (["--models", str(tmp_path), "--name", "x"], "--name is for a single MODEL"),
        ([str(tmp_path), "--name", "a/b"], "can't be the name of a model"),
    ):
        assert main(["serve", *arguments]) == 3
        assert why in capsys.readouterr().err
    for arguments in (["--port", "x"], ["--workers", "0"], ["--max-body", "1T"], ["--timeout", "nan"]):
        with pytest.raises(SystemExit) as error:
            main(["serve", str(tmp_path), *arguments])
        assert error.value.code == 2


def test_a_load_that_failed_is_tried_again(folder, monkeypatch):
    """Its process may have ended for want of memory; the files are the same."""
    from oprack_serve import models as module
    from oprack_serve.model import LoadError
    from oprack_serve.settings import Settings

    events = []

    class FailsTwice(Loads):
        tries = 0

        async def load(self, recorded):
            FailsTwice.tries += 1
            if FailsTwice.tries < 3:
                raise LoadError("its process ended")

    monkeypatch.setattr(module, "Model", FailsTwice)
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.05)

    async def watch():
        models = module.Models(Settings(models=folder, poll=0.01), lambda event, **fields: events.append(event))
        await models.start()
        assert not models.ready and models.index()[0]["reason"] == "its process ended"
        async with asyncio.timeout(10):
            while not models.serving:
                await asyncio.sleep(0.01)
        assert models.ready and models.index()[0] == {"name": "scaled", "version": "1", "state": "READY", "reason": ""}
        await models.stop()

    asyncio.run(watch())
    assert FailsTwice.tries == 3 and events == ["model failed"] * 2


@pytest.mark.parametrize("warm", [True, False])
def test_a_pause_is_for_workers_that_end_before_they_have_been_warmed_up(warm):
    """Others were ended by what came; if it comes again, a pause would only make all wait."""
    from oprack_serve.host import Host, _Child

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        host = Host(ours, None, None, None, 1)
        pauses = []
        for number in range(7):
            process = subprocess.Popen(["true"])
            pidfd = os.pidfd_open(process.pid)
            host._children[pidfd] = _Child(number, process.pid, time.monotonic())
            if warm:
                theirs.send(json.dumps({"warm": number}).encode())
                assert host._obey()
            before = time.monotonic()
            (due,) = host._reap(pidfd)
            process.returncode = 0  # the host has waited for it
            pauses.append(due - before > 0.9)
        assert pauses == ([False] * 7 if warm else [False, True, True, True, True, True, True])


@pytest.mark.parametrize(
    ("options", "precisions"),
    [([], ()), (["--int8"], ("int8",)), (["--bf16", "--int8"], ("bfloat16", "int8"))],
)
def test_precisions_reach_the_predictor(
    options: list[str], precisions: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oprack import inference
    from oprack_serve import host, server
    from oprack_serve.options.model_options import ModelOptions
    from oprack_serve.settings import Settings

    found: list[Settings] = []
    monkeypatch.setattr(server, "serve", lambda settings: found.append(settings) or 0)
    assert main(["serve", "--models", str(tmp_path), *options]) == 0
    assert found[0].precisions() == precisions
    configs: list[inference.Config] = []
    monkeypatch.setattr(inference, "create_predictor", configs.append)
    path = str(Path(__file__).parents[3] / "tests" / "data" / "small_models" / "resnet.pdmodel")
    host.load(path, 0, options=ModelOptions().or_else(found[0].precisions()).of_predictor())
    assert set(configs[0].precisions()) == set(precisions)
