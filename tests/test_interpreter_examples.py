"""The training examples, step by step as programs and eagerly, op by op: the same losses from the same seed."""

from __future__ import annotations

import copy
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import oprack
import pytest
from eager_programs import run_eagerly
from oprack import LoDTensor, Parameter, sequences, to_tensor
from oprack.eager_tensor.devices import RANDOM
from test_examples import example

STEPS = 4


class _Stop(Exception):
    pass


class _Watch:
    """What an example builds and feeds, taken down while it takes its first steps."""

    def __init__(self, module: ModuleType, monkeypatch: pytest.MonkeyPatch, out: Path) -> None:
        import common
        from oprack.optimizer import Optimizer

        self.feeds: list[Any] = []
        self.losses: list[float] = []
        watch = self
        minimize, train, start = Optimizer.minimize, common.Run.train, common.Run.__init__

        def watched_minimize(optimizer: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
            watch.forward = loss.program.clone()
            watch.optimizer, watch.loss = optimizer, loss.name
            return minimize(optimizer, loss, *args, **kwargs)

        def watched_start(run: Any, *args: Any) -> None:
            start(run, *args)
            watch.random = run.executor.random.state()
            watch.initial = {
                v.name: np.array(run.scope.get_var(v.name).get().array)
                for v in watch.forward.global_block().vars.values()
                if v.persistable
            }
            watch.rate = copy.deepcopy(watch.optimizer.schedule)

        def watched_train(run: Any, feed: Any, loss: Any) -> float:
            if len(watch.feeds) == STEPS:
                raise _Stop
            watch.feeds.append(feed)
            watch.losses.append(train(run, feed, loss))
            return watch.losses[-1]

        monkeypatch.setattr(Optimizer, "minimize", watched_minimize)
        monkeypatch.setattr(common.Run, "__init__", watched_start)
        monkeypatch.setattr(common.Run, "train", watched_train)
        with pytest.raises(_Stop):
            module.main(["--quick", "--epochs", "2", "--out", str(out)])


def _parameters(watch: _Watch) -> dict[str, Any]:
    """Eager parameters and running statistics, as the startup program filled them."""
    found: dict[str, Any] = {}
    for name, array in watch.initial.items():
        var = watch.forward.global_block().var(name)
        if var.is_parameter and not var.stop_gradient:
            parameter = Parameter(array, name)
            info = watch.forward.parameters[name]
            parameter.attr = oprack.ParamAttr(
                name, learning_rate=info.learning_rate, regularizer=info.regularizer, need_clip=info.need_clip
            )
            found[name] = parameter
        else:
            found[name] = to_tensor(array, name=name)
    return found


@pytest.mark.parametrize("name", ["train_digits", "train_sentiment", "train_tagger", "train_seq2seq"])
def test_losses_are_those_of_the_program(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    watch = _Watch(example(name), monkeypatch, tmp_path)
    state = _parameters(watch)
    parameters = [p for p in state.values() if isinstance(p, Parameter)]
    optimizer = copy.copy(watch.optimizer)
    optimizer.forget_program()
    optimizer.parameter_list = parameters
    if watch.rate is not None:
        optimizer._learning_rate = watch.rate
    RANDOM.load_state(watch.random)
    exprs: dict[int, Any] = {}
    losses = []
    for feed in watch.feeds:
        given = {n: to_tensor(v) if isinstance(v, LoDTensor) else to_tensor(np.asarray(v)) for n, v in feed.items()}
        found = run_eagerly(watch.forward, state | given, exprs)
        loss = found[watch.loss]
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if watch.rate is not None:
            watch.rate.step()
        state |= {n: found[n].detach() for n in state if not isinstance(state[n], Parameter)}
        losses.append(float(loss))
    np.testing.assert_allclose(losses, watch.losses, rtol=2e-4)
    assert losses[-1] != losses[0]


def test_the_eager_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It learns, its model answers as a program, and jit changes no number."""
    example("train_digits")
    import train_digits_eager

    printed = []
    for more in ([], ["--jit"]):
        assert train_digits_eager.main(["--quick", "--epochs", "2", "--out", str(tmp_path), *more]) == 0
        printed.append([line for line in capsys.readouterr().out.splitlines() if "processor time" not in line])
    assert printed[0] == printed[1] and printed[0][-1].startswith("the saved model reads")
    assert float(printed[0][1].split()[-1]) > 0.4


def test_the_encoder_decoder_example(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It learns, and what it says with a cache is what it would say to all of its own words at once."""
    module = example("train_pronunciation")
    monkeypatch.setattr(module, "BATCH", 70)
    assert module.main(["--quick", "--epochs", "2", "--out", str(tmp_path)]) == 0
    losses = [float(line.split()[3]) for line in capsys.readouterr().out.splitlines() if line.startswith("epoch")]
    assert len(losses) == 2 and losses[1] < 0.9 * losses[0]
    _, held = module.words(True)
    oprack.seed(2)
    net = module.Speaker()
    letters, _, _ = module.tensors(held[:5])
    with oprack.no_grad():
        said = [one[: module.LONGEST - 1] for one in net.say(letters)]
        told = sequences.from_list([np.int64([module.START, *one]) for one in said])
        again = net(letters, told).numpy().argmax(axis=1)
    found = np.split(again, told.lod[0][1:-1])
    assert [list(one[:-1]) for one in found] == [list(one) for one in said]
    assert module.errors([[1, 2, 3], []], [(None, [1, 2, 3]), (None, [4])]) == (0.5, 0.25)
