"""The plainest server of vectors of texts: http.server, tokenizers with padding, and ONNX Runtime.

    python tests/benchmarks/plain_server.py ONNX TOKENIZER --runs 1 --threads 1

ONNX takes numbers of tokens [texts, longest] and which of them are none of padding, and gives a vector for each text;
TOKENIZER is the file of tokenizers. It answers requests as tritonclient sends them, of one tensor of texts, and writes
its address when it is ready. As many texts run together as a request has, padded to the longest of them.
"""

from __future__ import annotations

import argparse
import json
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import onnxruntime
from tokenizers import Tokenizer


class Embedder:
    """Texts to vectors of length 1.

    Args:
        onnx: The encoder.
        tokenizer: What makes tokens of texts.
        runs: How many batches run at once.
        threads: What each of them computes with.
    """

    def __init__(self, onnx: str, tokenizer: str, runs: int, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
        self._names = [tensor.name for tensor in self._session.get_inputs()]
        self._tokenizer = Tokenizer.from_file(tokenizer)
        self._tokenizer.enable_padding()
        self._free = threading.BoundedSemaphore(runs)

    def vectors(self, texts: list[str]) -> np.ndarray:
        """float32 [texts, width]."""
        found = self._tokenizer.encode_batch(texts)
        ids = np.array([text.ids for text in found], np.int64)
        kept = np.array([text.attention_mask for text in found], np.float32)
        with self._free:
            (means,) = self._session.run(None, dict(zip(self._names, (ids, kept), strict=True)))
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)


class Answers(BaseHTTPRequestHandler):
    """Requests for inference, whatever their path; `embedder` is set by main."""

    embedder: Embedder
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        texts, at = [], int(self.headers["Inference-Header-Content-Length"])
        while at < len(body):
            (size,) = struct.unpack_from("<I", body, at)
            texts.append(body[at + 4 : at + 4 + size].decode())
            at += 4 + size
        found = self.embedder.vectors(texts).astype(np.float32)
        row = {"name": "vectors", "datatype": "FP32", "shape": found.shape}
        row["parameters"] = {"binary_data_size": found.nbytes}
        head = json.dumps({"model_name": "embedder", "model_version": "1", "outputs": [row]}).encode()
        self.send_response(200)
        self.send_header("Inference-Header-Content-Length", str(len(head)))
        self.send_header("Content-Length", str(len(head) + found.nbytes))
        self.end_headers()
        self.wfile.write(head + found.tobytes())
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("onnx")
    parser.add_argument("tokenizer")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    Answers.embedder = Embedder(options.onnx, options.tokenizer, options.runs, options.threads)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        print(f"127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
