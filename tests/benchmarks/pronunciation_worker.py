"""One engine of the training in bench_sequences.py: pronunciation_worker.py ENGINE THREADS FILE, then lines on stdin.

oprack trains the net of examples/train_pronunciation.py on rows; PyTorch the same one on padded batches. FILE holds the
words, and the weights with which both begin. A line is a number of steps; the answer is their losses, and seconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, HEADS, LAYERS, LONGEST, LETTERS, PHONEMES, BATCH, RATE, SEED = 128, 4, 2, 40, 26, 39, 512, 1e-3, 1
Words = list[tuple[np.ndarray, np.ndarray]]


def contents(file: Path) -> tuple[Words, dict[str, np.ndarray]]:
    """Numbers of letters and of phonemes; weights by oprack's names."""
    with np.load(file) as saved:
        weights = {name: saved[name] for name in saved.files if "." in name}
        parts = [np.split(saved[name], np.cumsum(saved[f"{name} lengths"])[:-1]) for name in ("letters", "phonemes")]
    return list(zip(*parts, strict=True)), weights


def of_torch(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same by PyTorch's names; its matrices are transposed, and those of queries, keys and values are one."""
    found = {}
    for name, value in weights.items():
        is_matrix = (value.ndim == 2 and "layers" in name) or name == "out.weight"
        found[name.replace("cross_attn", "multihead_attn")] = value.T if is_matrix else value
    for name in [name for name in found if ".q_proj." in name]:
        parts = [found.pop(name.replace("q_proj", f"{x}_proj")) for x in "qkv"]
        found[name.replace("q_proj.", "in_proj_")] = np.concatenate(parts)
    return found


def batches(data: Words) -> Iterator[Words]:
    """As those of the example, epoch after epoch."""
    epoch = 0
    while True:
        order = np.random.default_rng([SEED, epoch]).permutation(len(data))
        for i in range(0, len(order) - BATCH + 1, BATCH):
            yield [data[j] for j in order[i : i + BATCH]]
        epoch += 1


def oprack_steps(data: Words, weights: dict[str, np.ndarray]) -> Iterator[float]:
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    import oprack
    import train_pronunciation as example
    from oprack import nn, optimizer

    net, loss_of = example.Speaker(), nn.CrossEntropyLoss()
    net.set_state_dict(weights)
    forward = oprack.jit(net, specs=example.SPECS)
    adam = optimizer.Adam(RATE, parameters=net.parameters())
    for batch in batches(data):
        letters, told, wanted = example.tensors(batch)
        loss = loss_of(forward(letters, told), wanted)
        loss.backward()
        adam.step()
        adam.clear_grad()
        yield loss.item()


def torch_steps(data: Words, weights: dict[str, np.ndarray], threads: int) -> Iterator[float]:
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pad_sequence

    torch.set_num_threads(threads)

    class Speaker(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            size: Any = WIDTH, HEADS, 4 * WIDTH, 0.0
            self.letters, self.phonemes = nn.Embedding(LETTERS, WIDTH), nn.Embedding(PHONEMES + 1, WIDTH)
            self.places = nn.Embedding(LONGEST, WIDTH)
            layer = nn.TransformerEncoderLayer(*size, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
            self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(*size, batch_first=True), LAYERS)
            self.out = nn.Linear(WIDTH, PHONEMES + 1)

        def forward(self, letters: Any, told: Any, no_letter: Any, none_told: Any) -> Any:
            read = self.letters(letters) + self.places(torch.arange(letters.shape[1]))
            memory = self.encoder(read, src_key_padding_mask=no_letter)
            later = torch.ones(told.shape[1], told.shape[1], dtype=torch.bool).triu(1)
            rows = self.phonemes(told) + self.places(torch.arange(told.shape[1]))
            masks = {"tgt_key_padding_mask": none_told, "memory_key_padding_mask": no_letter}
            return self.out(self.decoder(rows, memory, tgt_mask=later, tgt_is_causal=True, **masks))

    net = Speaker()
    net.load_state_dict({name: torch.tensor(value) for name, value in of_torch(weights).items()})
    adam = torch.optim.Adam(net.parameters(), RATE)

    def padded(parts: list[np.ndarray]) -> tuple[Any, Any]:
        rows = pad_sequence([torch.from_numpy(x) for x in parts], batch_first=True)
        counts = torch.tensor([len(x) for x in parts])
        return rows, torch.arange(rows.shape[1])[None] >= counts[:, None]

    for batch in batches(data):
        letters, no_letter = padded([x for x, _ in batch])
        told, none_told = padded([np.append(PHONEMES, x) for _, x in batch])
        wanted, _ = padded([np.append(x, PHONEMES) for _, x in batch])
        wanted = wanted.masked_fill(none_told, -100)  # which the loss passes over
        scores = net(letters, told, no_letter, none_told)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), wanted.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        yield loss.item()


def main() -> None:
    engine, threads, (data, weights) = sys.argv[1], int(sys.argv[2]), contents(Path(sys.argv[3]))
    steps = torch_steps(data, weights, threads) if engine == "torch" else oprack_steps(data, weights)
    print(json.dumps({"words": len(data)}), flush=True)
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        losses = [next(steps) for _ in range(int(line))]
        seconds = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        print(json.dumps(seconds | {"losses": losses}), flush=True)


if __name__ == "__main__":
    main()
