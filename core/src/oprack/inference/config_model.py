"""Settings of a predictor that say which model it loads."""

from __future__ import annotations

from pathlib import Path

from oprack.errors import InvalidArgumentError


class ModelSettings:
    """A folder, a pair of files, or the bytes of both; what is set last counts."""

    def __init__(self) -> None:
        super().__init__()
        self._model_dir = ""
        self._prog_file = ""
        self._params_file = ""
        self._buffers: tuple[bytes, bytes] | None = None

    def set_model(self, model: str | Path, params_file: str | Path | None = None) -> None:
        """A folder, or a program file and a parameter file."""
        self._buffers = None
        if params_file is None:
            self._model_dir, self._prog_file, self._params_file = str(model), "", ""
        else:
            self._model_dir, self._prog_file, self._params_file = "", str(model), str(params_file)

    def set_prog_file(self, path: str | Path) -> None:
        """Name the file of the program.

        Args:
            path: The file.
        """
        self._buffers, self._prog_file = None, str(path)

    def set_params_file(self, path: str | Path) -> None:
        """Name the file of the parameters.

        Args:
            path: The file.
        """
        self._buffers, self._params_file = None, str(path)

    def set_model_buffer(
        self, prog_buffer: bytes, prog_buffer_size: int, params_buffer: bytes, params_buffer_size: int
    ) -> None:
        """The bytes of a program and of its combined parameters.

        Args:
            prog_buffer: The bytes of the program.
            prog_buffer_size: How many of them count.
            params_buffer: The bytes of the parameters.
            params_buffer_size: How many of them count.

        Raises:
            InvalidArgumentError: A buffer holds no bytes, or a size is larger than its buffer.
        """
        given = (("program", prog_buffer, prog_buffer_size), ("params", params_buffer, params_buffer_size))
        for what, buffer, size in given:
            if not isinstance(buffer, bytes | bytearray | memoryview):
                raise InvalidArgumentError(
                    f"set_model_buffer: the {what} buffer is a {type(buffer).__name__}; expected bytes, as "
                    "open(file, 'rb').read() gives them"
                )
            if not isinstance(size, int) or not 0 <= size <= len(buffer):
                raise InvalidArgumentError(
                    f"set_model_buffer: the size of the {what} buffer is given as {size!r}, but it has {len(buffer)} "
                    "bytes; expected at most that"
                )
        self._buffers = (bytes(prog_buffer[:prog_buffer_size]), bytes(params_buffer[:params_buffer_size]))
        self._model_dir = self._prog_file = self._params_file = ""

    def model_dir(self) -> str:
        """The folder of the model; "" when files are named."""
        return self._model_dir

    def prog_file(self) -> str:
        """The file of the program; "" when there is none."""
        return self._prog_file

    def params_file(self) -> str:
        """The file of the parameters; "" when there is none."""
        return self._params_file

    def model_from_memory(self) -> bool:
        """Whether set_model_buffer gave the model."""
        return self._buffers is not None

    def buffers(self) -> tuple[bytes, bytes] | None:
        """Bytes of program and parameters, when set_model_buffer gave them."""
        return self._buffers
