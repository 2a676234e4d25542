"""Pyright as editors run it: a language server that is asked what comes next."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast


class LanguageServer:
    """A server for one folder; messages are JSON-RPC over its standard input and output."""

    def __init__(self, folder: Path, python: Path) -> None:
        self._folder, self._python, self._id, self._version = folder, python, 0, 0
        self._file = (folder / "completed.py").as_uri()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pyright.langserver", "--stdio"],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._in, self._out = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)

    def __enter__(self) -> Self:
        capabilities = {"workspace": {"configuration": True}}
        root = self._folder.as_uri()
        self._ask("initialize", processId=None, rootUri=root, capabilities=capabilities)
        self._send(method="initialized", params={})
        document = {"uri": self._file, "languageId": "python", "version": 0, "text": ""}
        self._send(method="textDocument/didOpen", params={"textDocument": document})
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        self._in.close()
        self._out.close()

    def complete(self, text: str) -> set[str]:
        """What an editor offers behind the last character of a file with this text."""
        self._version += 1
        document = {"uri": self._file, "version": self._version}
        self._send(
            method="textDocument/didChange", params={"textDocument": document, "contentChanges": [{"text": text}]}
        )
        lines = text.split("\n")
        position = {"line": len(lines) - 1, "character": len(lines[-1])}
        found = self._ask("textDocument/completion", textDocument={"uri": self._file}, position=position)
        return {item["label"] for item in (found if isinstance(found, list) else found["items"])}

    def _send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._in.flush()

    def _ask(self, method: str, **params: Any) -> Any:
        self._id += 1
        self._send(id=self._id, method=method, params=params)
        while True:
            message = self._receive()
            if "method" in message and "id" in message:  # the server asks, too: for settings, mostly
                self._answer(message)
            elif message.get("id") == self._id:
                assert "error" not in message, message
                return message["result"]

    def _answer(self, message: dict[str, Any]) -> None:
        result = None
        if message["method"] == "workspace/configuration":
            settings = {"pythonPath": str(self._python)}
            result = [settings if item.get("section") == "python" else {} for item in message["params"]["items"]]
        self._send(id=message["id"], result=result)

    def _receive(self) -> dict[str, Any]:
        length = 0
        while (line := self._out.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        assert length, "the language server has ended"
        return json.loads(self._out.read(length))
