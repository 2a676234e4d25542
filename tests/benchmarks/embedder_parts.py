"""What bench_serve.py needs of the embedder: texts, the encoder for both servers, tritonclient, the plainest server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import oprack
import tritonclient.http as triton
from oprack import nn
from tokenizers import Tokenizer

ROOT = Path(__file__).parents[2]
LAYERS, WIDTH, HEADS = 4, 256, 4
Address = tuple[str, int]


def paragraphs(count: int) -> list[str]:
    """Paragraphs of the documents, in an order of their own."""
    found = {}
    for file in sorted(ROOT.glob("docs/**/*.md")):
        for text in file.read_text("utf-8").split("\n\n"):
            if text[:1].isalpha():
                found[" ".join(text.split())] = None
    return np.random.default_rng(0).permutation(list(found))[:count].tolist()


def lengths(tokenizer: Path, texts: list[str]) -> list[int]:
    """Tokens of each text."""
    return [len(found.ids) for found in Tokenizer.from_file(str(tokenizer)).encode_batch(texts)]


def padding(lengths: list[int], batch: int) -> float:
    """The share of padding in batches of so many texts, one after the other."""
    batches = [lengths[i : i + batch] for i in range(0, len(lengths), batch)]
    return 1 - sum(lengths) / sum(len(b) * max(b) for b in batches)


class Padded(nn.Module):
    """The encoder of the example over padded batches; `kept` is 1 for a token, 0 for padding."""

    def __init__(self, rows: nn.Module) -> None:
        super().__init__()
        self.words, self.places, self.layers = rows.words, rows.places, rows.layers

    def forward(self, ids: oprack.Tensor, kept: oprack.Tensor) -> oprack.Tensor:
        x = self.words(ids) + 0.1 * self.places(oprack.arange(ids.shape[1]))
        x = self.layers(x, ((1.0 - kept) * -1e9).unsqueeze([1, 2]))
        return (x * kept.unsqueeze([2])).sum([1]) / kept.sum([1], keepdim=True)


def collect(folder: Path) -> tuple[Path, Path, Path]:
    """Make the encoder for both servers.

    Returns:
        What oprack serves, the encoder of padded batches for ONNX Runtime, and the tokenizer's file.
    """
    sys.path.insert(0, str(ROOT / "examples" / "serving"))
    import collect as examples

    served, padded = folder / "served", folder / "padded"
    examples.collect_embedder(served, LAYERS, WIDTH, HEADS)
    of_batches = Padded(examples.encoder(LAYERS, WIDTH, HEADS)).eval()  # with the weights of the one that is served
    inputs = [oprack.InputSpec([None, None], dtype, name) for dtype, name in (("int64", "ids"), ("float32", "kept"))]
    examples.save_model(padded / "model", of_batches, inputs)
    onnx = folder / "encoder.onnx"
    command = [sys.executable, "-m", "oprack", "convert", str(padded), "--to", "onnx", str(onnx.with_suffix(""))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return served, onnx, served / "embedder" / "tokenizer.json"


@contextmanager
def plain_server(onnx: Path, tokenizer: Path, runs: str, threads: str) -> Iterator[tuple[Address, int]]:
    """The plainest server, when it is ready."""
    script = str(Path(__file__).with_name("plain_server.py"))
    command = [sys.executable, script, str(onnx), str(tokenizer), "--runs", runs, "--threads", threads]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().partition(":")
        try:
            yield (host, int(port)), process.pid
        finally:
            process.terminate()


def asking(address: Address) -> Callable[[list[str]], np.ndarray]:
    """A client on this thread, with a connection of its own: texts to vectors [texts, width]."""
    client = triton.InferenceServerClient(f"{address[0]}:{address[1]}")

    def vectors(texts: list[str]) -> np.ndarray:
        given = triton.InferInput("text", [len(texts)], "BYTES")
        given.set_data_from_numpy(np.array([text.encode() for text in texts], object))
        found: np.ndarray = client.infer("embedder", [given]).as_numpy("vectors")
        return found

    return vectors
