"""Members of Tensor that the Python array API standard asks for, beside operators, indexing and conversions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack.errors import InvalidArgumentError
from oprack.interpreter.devices import required_place
from oprack.tensor import LoDTensor, Place

if TYPE_CHECKING:
    from oprack.eager_tensor import Tensor

_NAMESPACE = "oprack.array_api"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""Versions of the standard; each holds those before it."""


class StandardMembers:
    """What Conversions inherits."""

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The module with the functions of the array API standard, oprack.array_api.

        Args:
            api_version: The version of the standard that the caller is written for.

        Returns:
            The module.

        Raises:
            InvalidArgumentError: It is a version that the module does not follow.
        """
        import importlib

        if api_version is not None and api_version not in VERSIONS:
            raise InvalidArgumentError(
                f"{_NAMESPACE} does not follow version {api_version!r} of the standard; expected one of "
                + ", ".join(VERSIONS)
            )
        return importlib.import_module(_NAMESPACE)

    @property
    def device(self) -> Place:
        """The place, under the name of the array API standard."""
        x: Any = self
        return x._meta.place  # type: ignore[no-any-return]

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """The tensor at another place, as `to`.

        Args:
            device: A Place or its name.
            stream: None, since each place has a stream of its own.

        Returns:
            The tensor; this one when it is there.

        Raises:
            InvalidArgumentError: There is a stream.
        """
        x: Any = self
        if stream is not None:
            raise InvalidArgumentError(f"to_device: stream is {stream!r}; expected None, since places have their own")
        return x.to(required_place(device, "to_device"))  # type: ignore[no-any-return]

    @property
    def mT(self) -> Tensor:
        """The last two dims swapped."""
        x: Any = self
        if x.ndim < 2:
            raise InvalidArgumentError(f"{x.describe()}: mT swaps the last two dims; expected two at least")
        return x.transpose([*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])  # type: ignore[no-any-return]

    def __complex__(self) -> complex:
        x: Any = self
        return complex(x.item())

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the memory to another library, whose writes autograd does not notice.

        Args:
            stream: The stream of the consumer; None on the CPU.
            max_version: The newest version of DLPack that the consumer knows.
            dl_device: Where the consumer wants the memory, as DLPack numbers devices.
            copy: True for a copy, False for the memory itself.

        Returns:
            The capsule.

        Raises:
            BufferError: The memory can't be exported so.
        """
        options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        return self._dense()._value.__dlpack__(**{k: v for k, v in options.items() if v is not None})

    def __dlpack_device__(self) -> tuple[Any, int]:
        """The kind and the number of the device, as DLPack numbers them."""
        return self._dense()._value.__dlpack_device__()  # type: ignore[no-any-return]

    def _dense(self) -> Any:
        x: Any = self
        if x._meta.container is not LoDTensor:
            raise BufferError(f"{x.describe()} is no array; expected a dense tensor")
        return x
