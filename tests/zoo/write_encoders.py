"""Writes encoders with Paddle, and what it answers to a padded batch: `python write_encoders.py FOLDER [NAME ...]`.

The nets are those of the registry; those that take every token for a word unless they are told otherwise get an input
`attention_mask`. FOLDER/NAME gets what a net of the zoo has in tests/data, as tests/data/encoders/README.md says.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import paddle
import registry
from build import build
from write import initialise, keep, predicted

LENGTHS = (13, 6, 1, 0, 9)
ENCODERS = {  # what stands for padding; None: an attention_mask does
    "bert": 0,
    "roberta": 0,
    "ernie": 0,
    "albert": None,
    "distilbert": 0,
    "tinybert": 0,
    "mobilebert": None,
    "convbert": 0,
    "mpnet": 1,
    "t5": None,
}
LAYERS = {"t5": "paddlenlp.transformers:T5EncoderModel"}
"""Those of which the registry has more than the encoder."""


def feeds_of(net: registry.Net, padding: int | None) -> dict[str, np.ndarray]:
    """A batch whose sentences have these lengths."""
    kept = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]
    ids = net.feeds(*kept.shape)["input_ids"]
    feeds = {"input_ids": np.where(kept, ids, padding or 0)}
    return feeds if padding is not None else feeds | {"attention_mask": kept.astype("int64")}


def write(name: str, folder: Path) -> None:
    """Program, recipe of the parameters, inputs and answers."""
    padding, net = ENCODERS[name], registry.ALL[name]
    inputs = {"input_ids": net.inputs["input_ids"]}
    if padding is None:
        inputs["attention_mask"] = {"shape": ["batch", "size"], "dtype": "int64"}
    net = replace(net, inputs=inputs, layer=LAYERS.get(name, net.layer))
    folder.mkdir(parents=True, exist_ok=True)
    feeds, prefix = feeds_of(net, padding), folder / "model"
    paddle.disable_static()
    layer, specs = build(net)
    drawn = initialise(net, layer)
    keys = {tensor.name: key for key, tensor in layer.state_dict().items()}
    paddle.jit.save(layer, str(prefix), input_spec=specs)
    answers = predicted(prefix, False, feeds)
    np.savez_compressed(
        folder / "io.npz",
        **{f"in/{k}": v for k, v in feeds.items()},
        **{f"out/{i:02}": v for i, v in enumerate(answers)},
    )
    paddle.enable_static()
    with paddle.static.scope_guard(paddle.static.Scope()):
        program, *_ = paddle.static.load_inference_model(str(prefix), paddle.static.Executor(paddle.CPUPlace()))
        names = [v.name for v in program.list_vars() if v.persistable and v.name not in ("feed", "fetch")]
        keep(folder, paddle.static.global_scope(), names, drawn, keys)
        for op in (op for block in program.blocks for op in block.ops):  # lines of Python on the machine that wrote it
            for attribute in set(op.attr_names) & {"op_callstack", "op_namescope", "op_device", "op_role_var"}:
                op._remove_attr(attribute)
        (folder / "model.pdmodel").write_bytes(program.desc.serialize_to_string())
    for file in folder.glob("model.pdiparams*"):
        file.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=sorted(ENCODERS), metavar="NAME")
    given = parser.parse_args()
    for name in given.names:
        write(name, given.folder / name)


if __name__ == "__main__":
    main()
