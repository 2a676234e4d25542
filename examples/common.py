"""What the training examples share: options, a run with progress bar, metrics and checkpoints, and the saved model."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# The products of these models are small: threads of BLAS wait for each other longer than they work. It reads this once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import oprack
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from oprack import LoDTensor, inference
from oprack.io import load_checkpoint, save_checkpoint, save_inference_model
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from tensorboardX import SummaryWriter

OUT = Path(__file__).resolve().parents[1] / "out" / "examples"
Feed = Mapping[str, Any]


def options(description: str | None, name: str, epochs: int, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Options of the command line, the same for every example."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument(
        "--epochs", type=int, default=epochs, help="passes over the training data (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, default=OUT / name, help="checkpoints, curve, metrics, model (%(default)s)")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint in --out")
    parser.add_argument("--seed", type=int, default=1, help="of parameters, batches and dropout (default: %(default)s)")
    parser.add_argument(
        "--save-every", type=int, default=100, metavar="STEPS", help="between checkpoints (%(default)s)"
    )
    parser.add_argument("--quick", action="store_true", help="a little of the data, to see that everything works")
    return parser.parse_args(argv)


class Run:
    """One training run: executor and scope, the step it is at, and the files in its folder.

    checkpoints/: parameters, optimizer state, schedule, random numbers, losses and scores so far. events.*: for
    `tensorboard --logdir`. loss.png: the curve. metrics.json: what was measured. The same seed gives the same numbers,
    also when a run was stopped in the middle and resumed.
    """

    def __init__(self, options: argparse.Namespace, main: Any, startup: Any, steps_per_epoch: int) -> None:
        self.options, self.main, self.steps_per_epoch = options, main, steps_per_epoch
        self.executor, self.scope = oprack.Executor(seed=options.seed), oprack.Scope()
        self.step, self.losses, self.scores = 0, [], {}
        self._checkpoints = options.out / "checkpoints"
        options.out.mkdir(parents=True, exist_ok=True)
        if options.resume:
            found = load_checkpoint(self._checkpoints, main, self.scope, self.executor)
            self.step, self.losses, self.scores = found.step, found.extra["losses"], found.extra["scores"]
        else:
            self.executor.run(startup, scope=self.scope)
        self._started = time.perf_counter(), time.process_time()

    def __enter__(self) -> Run:
        self._writer = SummaryWriter(str(self.options.out), purge_step=self.step)
        columns = [
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[loss]}"),
        ]
        self._progress = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn())
        total = self.options.epochs * self.steps_per_epoch
        self._bar = self._progress.add_task("training", total=total, completed=self.step, loss="")
        self._progress.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._progress.stop()
        self._writer.close()
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            print(f"stopped after step {self.step}; --resume goes on from the newest checkpoint")
            raise SystemExit(130) from None

    # The loop -------------------------------------------------------------------------------------------------------
    def epochs(self) -> range:
        """Epochs that are left, the one that was interrupted first."""
        return range(self.step // self.steps_per_epoch, self.options.epochs)

    def batches(self, epoch: int) -> Iterator[int]:
        """Numbers of the batches of an epoch in random order, without those that were done before an interruption."""
        order = np.random.default_rng([self.options.seed, epoch]).permutation(self.steps_per_epoch)
        yield from (int(i) for i in order[self.step - epoch * self.steps_per_epoch :])

    def generator(self) -> np.random.Generator:
        """Random numbers for the batch of this step."""
        return np.random.default_rng([self.options.seed, 1 << 32, self.step])

    def train(self, feed: Feed, loss: Any) -> float:
        """One step: run the program, let schedules go on, note the loss, now and then save."""
        (value,) = self.executor.run(self.main, feed, [loss], self.scope)
        self.losses.append(float(value))
        for name, schedule in self.main.schedules.items():
            self._writer.add_scalar(name, schedule(), self.step)
            schedule.step()
        self._writer.add_scalar("loss", self.losses[-1], self.step)
        self.step += 1
        recent = np.mean(self.losses[-50:])
        self._progress.update(self._bar, completed=self.step, loss=f"loss {recent:.4f}")
        if self.step % self.options.save_every == 0 and self.step % self.steps_per_epoch:
            self._save()
        return self.losses[-1]

    def epoch_done(self, epoch: int, **scores: float) -> None:
        """Note what was measured on held-out data, and save."""
        for name, value in scores.items():
            self.scores.setdefault(name, []).append([self.step, float(value)])
            self._writer.add_scalar(f"held_out/{name}", value, self.step)
        loss = np.mean(self.losses[-self.steps_per_epoch :])
        shown = "  ".join(f"{name} {value:.4f}" for name, value in scores.items())
        self._progress.console.print(f"epoch {epoch + 1}: loss {loss:.4f}  {shown}", highlight=False)
        self._save()
        self.draw()

    def _save(self) -> None:
        extra = {"losses": self.losses, "scores": self.scores}
        save_checkpoint(
            self._checkpoints, self.main, self.scope, step=self.step, executor=self.executor, extra=extra, keep=2
        )

    # Files ----------------------------------------------------------------------------------------------------------
    def draw(self) -> None:
        """loss.png: losses of the steps, their running mean, and the scores of the epochs."""
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.add_subplot()
        steps = np.arange(1, len(self.losses) + 1)
        width = max(1, min(50, len(steps) // 10))
        mean = np.convolve(self.losses, np.full(width, 1 / width), "valid")
        axes.plot(steps, self.losses, color="tab:blue", alpha=0.25, linewidth=0.8, label="loss")
        axes.plot(steps[width - 1 :], mean, color="tab:blue", label=f"loss, mean of {width} steps")
        axes.set(xlabel="step", ylabel="loss", yscale="log", title=self.options.out.name)
        right = axes.twinx()
        for (name, points), color in zip(self.scores.items(), ("tab:orange", "tab:green", "tab:red"), strict=False):
            right.plot(*zip(*points, strict=True), "o-", color=color, label=f"{name} (held out)")
        right.set_ylabel("score")
        handles = [*axes.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
        FigureCanvasAgg(figure).print_png(str(self.options.out / "loss.png"))

    def finish(self, program: Any, feeds: Sequence[Any], fetches: Sequence[Any]) -> inference.Predictor:
        """Write metrics.json and the model, from `feeds` to `fetches`; returns the model as loaded from its files."""
        wall, cpu = (
            now - then for now, then in zip((time.perf_counter(), time.process_time()), self._started, strict=True)
        )
        measured = {"losses": self.losses, "scores": self.scores, "seconds": {"wall": wall, "cpu": cpu}}
        (self.options.out / "metrics.json").write_text(json.dumps(measured))
        print(f"{wall:.0f} s, {cpu:.0f} s of them on the processor; files are in {self.options.out}")
        prefix = self.options.out / "model"
        save_inference_model(prefix, program, [v.name for v in feeds], [v.name for v in fetches], self.scope)
        return inference.create_predictor(inference.Config(f"{prefix}.pdmodel", f"{prefix}.pdiparams"))


# Sequences ----------------------------------------------------------------------------------------------------------
def sequences(rows: Sequence[np.ndarray]) -> LoDTensor:
    """Sequences of ids, [length, 1] each, one after another, without padding: one tensor with their offsets as LoD."""
    offsets = [0, *np.cumsum([len(r) for r in rows]).tolist()]
    return LoDTensor(np.ascontiguousarray(np.concatenate(rows), dtype=np.int64).reshape(-1, 1), [offsets])


def by_length(items: Sequence[Any], lengths: Sequence[int], rows: int) -> list[list[Any]]:
    """Batches of items of similar length with at most `rows` rows together (or one item), shortest first."""
    batches: list[list[Any]] = []
    free = 0
    for i in np.argsort(lengths, kind="stable"):
        if lengths[i] > free or not batches:
            batches.append([])
            free = rows
        batches[-1].append(items[i])
        free -= lengths[i]
    return batches


def predict(predictor: inference.Predictor, feed: Feed) -> list[LoDTensor]:
    """The outputs of a loaded model, in order, with their LoD."""
    for name, value in feed.items():
        handle = predictor.get_input_handle(name)
        array, lod = (value.array, value.lod) if isinstance(value, LoDTensor) else (value, [])
        handle.copy_from_cpu(array)
        handle.set_lod(lod)
    predictor.run()
    handles = map(predictor.get_output_handle, predictor.get_output_names())
    return [LoDTensor(handle.copy_to_cpu(), handle.lod()) for handle in handles]
