"""paddle.Model: trains, evaluates and saves a net."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import oprack

from oprack_paddle.trainer.callbacks import Callback, LRScheduler, ModelCheckpoint, ProgBarLogger
from oprack_paddle.trainer.loading import DataLoader
from oprack_paddle.trainer.training import load, save


def _list(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _tensors(values: Any) -> list[Any]:
    return [v if isinstance(v, oprack.Tensor) else oprack.to_tensor(np.asarray(v)) for v in _list(values)]


class Model:
    """A net with its loss, optimizer and metrics.

    Args:
        network: The net.
        inputs: InputSpecs of what the net takes; by their number batches are split into inputs and labels.
        labels: InputSpecs of the labels.
    """

    def __init__(self, network: Any, inputs: Any = None, labels: Any = None) -> None:
        self.network, self._inputs, self._labels = network, _list(inputs), _list(labels)
        self._optimizer: Any = None
        self._loss: Any = None
        self._metrics: list[Any] = []
        self._amp: dict[str, Any] = {}
        self.stop_training = False

    def prepare(self, optimizer: Any = None, loss: Any = None, metrics: Any = None, amp_configs: Any = None) -> None:
        """Say how the net is trained and measured."""
        self._optimizer, self._loss, self._metrics = optimizer, loss, _list(metrics)
        self._amp = {"level": amp_configs} if isinstance(amp_configs, str) else dict(amp_configs or {})

    def parameters(self, *args: Any, **kwargs: Any) -> Any:
        """The net's parameters."""
        return self.network.parameters(*args, **kwargs)

    # One batch --------------------------------------------------------------------------------------------------------
    def _losses(self, outputs: list[Any], labels: list[Any]) -> list[Any]:
        return [] if self._loss is None else _list(self._loss(*outputs, *labels))

    def _measured(self, losses: list[Any], outputs: list[Any], labels: list[Any]) -> Any:
        values = [float(np.asarray(x).mean()) for x in losses]
        metrics = [m.update(*[np.asarray(v) for v in _list(m.compute(*outputs, *labels))]) for m in self._metrics]
        return (([values], metrics) if losses else metrics) if self._metrics else [values]

    def train_batch(self, inputs: Any, labels: Any = None, update: bool = True) -> Any:
        """One step with a batch; the losses, and the metrics if there are any."""
        from oprack_paddle.trainer.precision import auto_cast

        self.network.train()
        labels = _tensors(labels)
        with auto_cast(enable=self._amp.get("level", "O0") != "O0"):
            outputs = _list(self.network(*_tensors(inputs)))
            losses = self._losses(outputs, labels)
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        total.backward()
        if update:
            self._optimizer.step()
            self._optimizer.clear_grad()
        return self._measured(losses, outputs, labels)

    def eval_batch(self, inputs: Any, labels: Any = None) -> Any:
        """The losses and metrics of a batch."""
        self.network.eval()
        with oprack.no_grad():
            outputs, labels = _list(self.network(*_tensors(inputs))), _tensors(labels)
            return self._measured(self._losses(outputs, labels), outputs, labels)

    def predict_batch(self, inputs: Any) -> list[Any]:
        """What the net makes of a batch."""
        self.network.eval()
        with oprack.no_grad():
            return [np.asarray(v) for v in _list(self.network(*_tensors(inputs)))]

    # Whole sets of data -----------------------------------------------------------------------------------------------
    def _split(self, batch: Any, predicting: bool = False) -> tuple[list[Any], list[Any]]:
        batch = _list(batch)
        n = len(self._inputs) or (len(batch) if predicting and len(batch) == 1 else max(1, len(batch) - 1))
        return batch[:n], batch[n:]

    def _loader(self, data: Any, batch_size: int, shuffle: bool, drop_last: bool, num_workers: int) -> Any:
        if data is None or not hasattr(data, "__getitem__") or isinstance(data, list | tuple | DataLoader):
            return data
        return DataLoader(data, batch_size=batch_size, shuffle=shuffle, drop_last=drop_last, num_workers=num_workers)

    def _logs(self, found: Any) -> dict[str, Any]:
        losses, metrics = (found if isinstance(found, tuple) else (found, [])) if self._loss else ([], found)
        logs: dict[str, Any] = {"loss": losses[0]} if losses else {}
        for metric, value in zip(self._metrics, metrics or [], strict=False):
            names, values = _list(metric.name()), _list(value)
            logs.update(zip(names, values, strict=False))
        return logs

    def _told(self, callbacks: Any, params: dict[str, Any], extra: list[Callback]) -> list[Any]:
        all_ = [*extra, *_list(callbacks)]
        for callback in all_:
            callback.set_model(self)
            callback.set_params(params)
        return all_

    def _epoch(self, loader: Any, mode: str, callbacks: list[Any], num_iters: Any = None) -> dict[str, Any]:
        """All batches once."""
        logs: dict[str, Any] = {}
        for metric in self._metrics:
            metric.reset()
        for step, batch in enumerate(loader):
            inputs, labels = self._split(batch)
            for c in callbacks:
                getattr(c, f"on_{mode}_batch_begin")(step, logs)
            logs = self._logs((self.train_batch if mode == "train" else self.eval_batch)(inputs, labels))
            logs["batch_size"] = len(inputs[0])
            for c in callbacks:
                getattr(c, f"on_{mode}_batch_end")(step, logs)
            if num_iters is not None and step + 1 >= num_iters:
                self.stop_training = mode == "train" or self.stop_training
                break
        for metric in self._metrics:
            logs.update(zip(_list(metric.name()), _list(metric.accumulate()), strict=False))
        return logs

    def fit(
        self, train_data: Any = None, eval_data: Any = None, batch_size: Any = 1, epochs: int = 1,
        eval_freq: int = 1, log_freq: int = 10,
        save_dir: Any = None, save_freq: int = 1, verbose: int = 2, drop_last: bool = False, shuffle: bool = True,
        num_workers: int = 0,
        callbacks: Any = None, accumulate_grad_batches: int = 1, num_iters: Any = None,
    ) -> None:  # fmt: skip
        """Train for some epochs."""
        train_size, eval_size = batch_size if isinstance(batch_size, list | tuple) else (batch_size, batch_size)
        loader = self._loader(train_data, train_size, shuffle, drop_last, num_workers)
        held_out = self._loader(eval_data, eval_size, False, False, num_workers)
        steps = len(loader) if hasattr(loader, "__len__") else None
        params = {"epochs": epochs, "steps": steps, "verbose": verbose, "save_dir": save_dir, "metrics": ["loss"]}
        own: list[Callback] = [ProgBarLogger(log_freq, verbose=verbose), ModelCheckpoint(save_freq, save_dir)]
        if not any(isinstance(c, LRScheduler) for c in _list(callbacks)):
            own.append(LRScheduler())
        told = self._told(callbacks, params, own)
        self.stop_training, logs = False, dict[str, Any]()
        for c in told:
            c.on_train_begin(logs)
        for epoch in range(epochs):
            for c in told:
                c.on_epoch_begin(epoch, logs)
            logs = self._epoch(loader, "train", told, num_iters)
            for c in told:
                c.on_epoch_end(epoch, logs)
            if held_out is not None and epoch % eval_freq == 0:
                self._evaluated(held_out, told)
            if self.stop_training:
                break
        for c in told:
            c.on_train_end(logs)

    def _evaluated(self, loader: Any, told: list[Any], num_iters: Any = None) -> dict[str, Any]:
        for c in told:
            c.on_eval_begin({})
        logs = self._epoch(loader, "eval", told, num_iters)
        for c in told:
            c.on_eval_end(logs)
        return logs

    def evaluate(
        self, eval_data: Any, batch_size: int = 1, log_freq: int = 10, verbose: int = 2, num_workers: int = 0,
        callbacks: Any = None,
        num_iters: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Losses and metrics on data that is not trained on; the loss is that of the last batch."""
        loader = self._loader(eval_data, batch_size, False, False, num_workers)
        told = self._told(callbacks, {"verbose": verbose}, [ProgBarLogger(log_freq, verbose=verbose)])
        logs = self._evaluated(loader, told, num_iters)
        return {k: v for k, v in logs.items() if k != "batch_size"}

    def predict(
        self,
        test_data: Any,
        batch_size: int = 1,
        num_workers: int = 0,
        stack_outputs: bool = False,
        verbose: int = 1,
        callbacks: Any = None,
    ) -> list[Any]:
        """What the net makes of each batch, one list for each output."""
        loader = self._loader(test_data, batch_size, False, False, num_workers)
        told = self._told(callbacks, {"verbose": verbose}, [])
        for c in told:
            c.on_predict_begin({})
        batches = []
        for step, batch in enumerate(loader):
            for c in told:
                c.on_predict_batch_begin(step, {})
            batches.append(self.predict_batch(self._split(batch, predicting=True)[0]))
            for c in told:
                c.on_predict_batch_end(step, {})
        for c in told:
            c.on_predict_end({})
        outputs = [list(o) for o in zip(*batches, strict=True)]
        return [np.concatenate(o) for o in outputs] if stack_outputs else outputs

    # Files ------------------------------------------------------------------------------------------------------------
    def save(self, path: str, training: bool = True) -> None:
        """Write the net's state, and the optimizer's; or, not for training, a model for inference."""
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        if not training:
            oprack.jit.save(self.network, path, input_spec=self._inputs)
            return
        save(self.network.state_dict(), path + ".pdparams")
        if self._optimizer is not None:
            save(self._optimizer.state_dict(), path + ".pdopt")

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Read what save wrote."""
        state, own = load(path + ".pdparams"), self.network.state_dict()
        if skip_mismatch:
            state = {n: v for n, v in state.items() if n in own and tuple(np.shape(v)) == tuple(own[n].shape)}
        self.network.set_state_dict(state)
        if self._optimizer is not None and not reset_optimizer and os.path.exists(path + ".pdopt"):
            self._optimizer.set_state_dict(load(path + ".pdopt"))

    def summary(self, input_size: Any = None, dtype: Any = None) -> Any:
        """Print the layers of the net."""
        from oprack_paddle.trainer.training import summary

        sizes = input_size if input_size is not None else [s.shape for s in self._inputs]
        return summary(self.network, sizes, dtype)
