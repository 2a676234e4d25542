"""Requests for benchmarks of `oprack serve`: sentences for LAC, pictures for recognition, as bytes of HTTP."""

from __future__ import annotations

import json

import numpy as np


def request_bytes(model: str, inputs: list[tuple[str, np.ndarray, list[list[int]]]]) -> bytes:
    """A whole HTTP request with binary tensors."""
    names = {"int64": "INT64", "float32": "FP32"}
    rows = []
    for name, array, lod in inputs:
        row = {"name": name, "shape": array.shape, "datatype": names[array.dtype.name]}
        row["parameters"] = {"binary_data_size": array.nbytes} | ({"lod": lod} if lod else {})
        rows.append(row)
    head = json.dumps({"inputs": rows, "parameters": {"binary_data_output": True}}).encode()
    body = head + b"".join(array.tobytes() for _, array, _ in inputs)
    start = f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    return f"{start}Inference-Header-Content-Length: {len(head)}\r\n\r\n".encode() + body


def sentences(count: int, seed: int = 0) -> list[np.ndarray]:
    """Ids of characters; lengths as those of sentences: many short, few long."""
    random = np.random.default_rng(seed)
    lengths = np.clip(random.lognormal(2.8, 0.7, count), 2, 120).astype(int)
    return [random.integers(1, 5000, (n, 1)).astype(np.int64) for n in lengths]


def lac_requests(texts: list[np.ndarray]) -> list[bytes]:
    return [request_bytes("lac", [("words", ids, [[0, len(ids)]])]) for ids in texts]


def padded(texts: list[np.ndarray]) -> list[np.ndarray]:
    """All as long as the longest of 32, as a batch without LoD would have them."""
    longest = [max(len(t) for t in texts[i - i % 32 : i - i % 32 + 32]) for i in range(len(texts))]
    return [np.pad(t, ((0, n - len(t)), (0, 0))) for t, n in zip(texts, longest, strict=True)]


def pictures(count: int) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.standard_normal((1, 3, 48, 320)).astype(np.float32) for _ in range(count)]
