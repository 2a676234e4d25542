"""Writes one net with Paddle, and what Paddle answers: `python write.py NAME FOLDER [--like FOLDER]`.

FOLDER gets the program (`model.pdmodel`, or `model.json` by Paddle 3), the recipe of the parameters (weights.py),
`BATCHxSIZE.npz` with the outputs of each case and `meta.json`. Paddle 3 takes the parameters of the folder `--like`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import registry
import weights
from build import Saved, build
from distance import distance

LEAST_VARIANCE = 1e-2


def initialise(net: registry.Net, layer: Saved) -> dict[str, dict[str, Any]]:
    """Draw the parameters and settle the statistics of batch norms on the inputs of the largest case.

    Returns:
        What was drawn: by the name of the parameter in programs, its `gen`.
    """
    drawn = {}
    for key, tensor in layer.state_dict().items():
        initial = tensor.numpy()
        statistics = key.endswith(("._mean", "._variance"))
        gen = (
            weights.generator(net.name, key, initial)
            if isinstance(tensor, paddle.base.framework.EagerParamBase)
            else None
        )
        if gen and not statistics:
            tensor.set_value(weights.draw(gen, list(initial.shape), "float32"))
            drawn[tensor.name] = gen
    norms = [n for n in layer.sublayers() if getattr(n, "_variance", None) is not None and hasattr(n, "_momentum")]
    kept = [n._momentum for n in norms]
    for norm in norms:
        norm.train()
        norm._momentum = 0.0
    if norms:
        batch = 4 if net.batches[-1] > 1 and "batch" in net.open else net.batches[-1]
        with paddle.no_grad():
            layer(*map(paddle.to_tensor, net.feeds(batch, net.sizes[-1]).values()))
    for norm, momentum in zip(norms, kept, strict=True):
        norm.eval()
        norm._momentum = momentum
        least = np.maximum(net.steady * np.square(norm._mean.numpy()), LEAST_VARIANCE)
        norm._variance.set_value(np.maximum(norm._variance.numpy(), least))
    return drawn


def keep(folder: Path, scope: Any, names: list[str], drawn: dict[str, dict[str, Any]], keys: dict[str, str]) -> None:
    """Write the recipe of what a program's scope holds, and leave out what the recipe gives back."""
    recipe, consts = [], {}
    for name in sorted(names, key=str.encode):
        value = np.array(scope.find_var(name).get_tensor())
        gen = drawn.get(name)
        if gen and weights.digest(weights.draw(gen, list(value.shape), str(value.dtype))) != weights.digest(value):
            gen = None  # the net changed it when it was saved
        if not gen:
            consts[name] = value
        recipe.append(
            {"name": name, "key": keys.get(name, ""), "shape": list(value.shape), "dtype": str(value.dtype), "gen": gen}
        )
    (folder / weights.RECIPE).write_text(json.dumps(recipe), "utf-8")
    np.savez_compressed(folder / weights.CONSTS, **consts)


def predicted(prefix: Path, passes: bool, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Outputs of Paddle's predictor for the first run: tensor arrays keep what runs before have written."""
    from paddle import inference

    config = inference.Config(f"{prefix}.pdmodel", f"{prefix}.pdiparams")
    config.disable_gpu()
    config.set_cpu_math_library_num_threads(1)
    config.switch_ir_optim(passes)
    if passes:
        config.enable_mkldnn()
    else:
        config.disable_mkldnn()
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    for name in predictor.get_input_names():
        predictor.get_input_handle(name).copy_from_cpu(feeds[name])
    predictor.run()
    return [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]


def answers(net: registry.Net, folder: Path, prefix: Path) -> tuple[Any, Any, list[str]]:
    """Run the saved program by Paddle without passes, and write the outputs of each case.

    Returns:
        The program, a scope with its parameters, and the names of its inputs.
    """
    for batch, size in net.cases():
        outputs = predicted(prefix, False, net.feeds(batch, size))
        np.savez_compressed(folder / f"{batch}x{size}.npz", **{f"{i:03}": v for i, v in enumerate(outputs)})
    paddle.enable_static()
    program, feeds, _ = paddle.static.load_inference_model(str(prefix), paddle.static.Executor(paddle.CPUPlace()))
    return program, paddle.static.global_scope(), list(feeds)


def facts(program: Any) -> dict[str, Any]:
    """Op types, how many ops, and how many blocks."""
    types = [op.type for block in program.blocks for op in block.ops]
    return {"types": sorted(set(types) - {"feed", "fetch"}), "ops": len(types), "blocks": program.num_blocks}


def own_difference(net: registry.Net, folder: Path, prefix: Path) -> float:
    """How far apart Paddle's outputs with its passes and oneDNN are from those without."""
    batch, size = net.cases()[-1]
    with np.load(folder / f"{batch}x{size}.npz") as expected:
        wanted = [expected[name] for name in sorted(expected.files)]
    found = predicted(prefix, True, net.feeds(batch, size))
    return max(distance(got, want) for got, want in zip(found, wanted, strict=True))


class Calibration(paddle.io.DataLoader):
    """The feeds of the runs of a net, as Paddle's quantization asks for its data."""

    def __init__(self, net: registry.Net) -> None:
        self._feeds = [net.feeds(*case) for case in net.cases()]

    def __len__(self) -> int:
        return len(self._feeds)

    def __call__(self) -> Iterator[dict[str, np.ndarray]]:
        return iter(self._feeds)


def quantise(net: registry.Net, folder: Path, name: str) -> None:
    """Write `model` from the program `name` of the folder, by Paddle's quantization after training."""
    from paddle.static.quantization import PostTrainingQuantization

    paddle.enable_static()
    with paddle.static.scope_guard(paddle.static.Scope()):
        pass_ = PostTrainingQuantization(
            paddle.static.Executor(paddle.CPUPlace()),
            str(folder),
            model_filename=f"{name}.pdmodel",
            params_filename=f"{name}.pdiparams",
            data_loader=Calibration(net),
            **net.quantize,
        )
        pass_.quantize()
        pass_.save_quantized_model(str(folder), "model")
    for file in folder.glob(f"{name}.*"):
        file.unlink()


def write(net: registry.Net, folder: Path) -> None:
    """By Paddle 2: program, recipe, answers."""
    layer, specs = build(net)
    drawn = initialise(net, layer)
    keys = {tensor.name: key for key, tensor in layer.state_dict().items()}
    prefix = folder / "model"
    if net.quantize:
        paddle.jit.save(layer, str(folder / "float"), input_spec=specs)
        quantise(net, folder, "float")
    else:
        paddle.jit.save(layer, str(prefix), input_spec=specs)
    program, scope, feeds = answers(net, folder, prefix)
    names = [v.name for v in program.list_vars() if v.persistable and v.name not in ("feed", "fetch")]
    keep(folder, scope, names, drawn, keys)
    meta = {"paddle": paddle.__version__, "feeds": feeds, **facts(program)}
    (folder / "meta.json").write_text(json.dumps(meta), "utf-8")
    meta["self_difference"] = own_difference(net, folder, prefix)  # last, since it may end the process
    (folder / "meta.json").write_text(json.dumps(meta), "utf-8")


def write_again(net: registry.Net, folder: Path, like: Path) -> None:
    """By Paddle 3: the same net with the same parameters, and its answers to the same inputs."""
    layer, specs = build(net)
    recipe = json.loads((like / weights.RECIPE).read_text("utf-8"))
    values = dict(weights.values(like))
    known = layer.state_dict()
    for entry in recipe:
        if entry["key"]:
            known[entry["key"]].set_value(values[entry["name"]])
    for batch, size in net.cases():  # before it is saved: what norms of weights make of them is made by a run
        with paddle.no_grad():
            outputs = layer(*map(paddle.to_tensor, net.feeds(batch, size).values()))
        np.savez_compressed(folder / f"{batch}x{size}.npz", **{f"{i:03}": v.numpy() for i, v in enumerate(outputs)})
    paddle.jit.save(layer, str(folder / "model"), input_spec=specs)
    (folder / "meta.json").write_text(json.dumps({"paddle": paddle.__version__}), "utf-8")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(registry.ALL), metavar="NAME")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--like", type=Path)
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True, exist_ok=True)
    net = registry.ALL[given.name]
    if given.like:
        write_again(net, given.folder, given.like)
    else:
        write(net, given.folder)


if __name__ == "__main__":
    main()
