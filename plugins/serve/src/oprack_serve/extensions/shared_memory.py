"""The system shared memory extension: tensors that a client on the same machine leaves in, or wants in, POSIX memory.

A region is read and written by calls of the system and never mapped: a client that cuts its memory off while the server
uses it would end a process that has mapped it.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from typing import Any

from oprack_serve.errors import RequestError

KEY = re.compile(r"/?[A-Za-z0-9_][A-Za-z0-9_.-]{0,250}")
FOLDER = "/dev/shm"
MAX_REGIONS, MAX_NAME = 128, 256
PARAMETERS = ("shared_memory_region", "shared_memory_byte_size", "shared_memory_offset")
_PARAMETERS = frozenset(PARAMETERS)


@dataclass(frozen=True)
class Region:
    """A part of an object of POSIX shared memory, as it was registered."""

    name: str
    key: str
    offset: int
    byte_size: int
    descriptor: int

    def described(self) -> dict[str, Any]:
        """As the protocol lists it."""
        return {"name": self.name, "key": self.key, "offset": self.offset, "byte_size": self.byte_size}


@dataclass(frozen=True)
class Placement:
    """Where a tensor lies: bytes of a region."""

    region: str
    byte_size: int
    offset: int

    @classmethod
    def of(cls, what: str, parameters: dict[str, Any]) -> Placement | None:
        """What the parameters of an input or output say; None when they say nothing of it. Raises RequestError."""
        if _PARAMETERS.isdisjoint(parameters):
            return None
        region, size, offset = (parameters.get(key) for key in PARAMETERS)
        offset = 0 if offset is None else offset
        if not isinstance(region, str) or not _sizes(size, offset):
            raise RequestError(
                400, f"{what}: expected parameters shared_memory_region, a name, and shared_memory_byte_size, a number"
            )
        return cls(region, int(size or 0), int(offset))


class Regions:
    """The regions that clients have registered. Each has a descriptor of its object."""

    def __init__(self, allowed: bool) -> None:
        self.allowed = allowed
        self._regions: dict[str, Region] = {}

    def register(self, name: str, key: Any, offset: Any, byte_size: Any) -> None:
        """Take a region in. Raises RequestError for a key or sizes that no object has, and for a name that is taken."""
        self._check()
        if not 0 < len(name) <= MAX_NAME or name in self._regions:
            raise RequestError(400, f"region {name[:100]!r} is registered already, or is no name of a region")
        if len(self._regions) >= MAX_REGIONS:
            raise RequestError(503, f"{MAX_REGIONS} regions are registered already; unregister some")
        if not isinstance(key, str) or not KEY.fullmatch(key):
            raise RequestError(
                400, f"key {str(key)[:100]!r}: expected the name of a POSIX shared memory object, '/mine'"
            )
        if not _sizes(offset, byte_size) or not byte_size:
            raise RequestError(400, f"region {name[:100]!r}: expected offset and byte_size, as whole numbers")
        self._regions[name] = Region(name, key, offset, byte_size, _opened(key, offset + byte_size))

    def unregister(self, name: str) -> None:
        """Forget a region; one that is not there is no error."""
        self._check()
        found = self._regions.pop(name, None)
        if found is not None:
            os.close(found.descriptor)

    def unregister_all(self) -> None:
        """Forget all regions. Raises RequestError where shared memory is not served."""
        self._check()
        self.forget()

    def unregister_of_gpus(self) -> dict[str, Any]:
        """Nothing: there are none. Clients forget those as well before they begin, with or without a GPU."""
        self._check()
        return {}

    def forget(self) -> None:
        """Close the descriptors."""
        for region in self._regions.values():
            os.close(region.descriptor)
        self._regions.clear()

    def status(self, name: str = "") -> list[dict[str, Any]]:
        """A region, or all of them. Raises RequestError for one that is not there."""
        self._check()
        return [self._find(name).described()] if name else [region.described() for region in self._regions.values()]

    def _check(self) -> None:
        if not self.allowed:
            raise RequestError(400, "shared memory is not served here; start the server with --shared-memory")

    def _find(self, name: str) -> Region:
        found = self._regions.get(name)
        if found is None:
            raise RequestError(400, f"there is no shared memory region {name[:100]!r}; register it first")
        return found

    def _within(self, placement: Placement) -> tuple[int, int]:
        """(descriptor, position) of the bytes. Raises RequestError where they are not all of the region."""
        self._check()
        region = self._find(placement.region)
        if placement.offset + placement.byte_size > region.byte_size:
            raise RequestError(
                400,
                f"{placement.byte_size} bytes at {placement.offset} are not all within region {region.name[:100]!r}, "
                f"which has {region.byte_size}",
            )
        return region.descriptor, region.offset + placement.offset

    def read(self, placement: Placement) -> memoryview:
        """A copy of the bytes; the caller has bounded their number."""
        descriptor, at = self._within(placement)
        data = bytearray(placement.byte_size)
        if _whole(os.preadv, descriptor, memoryview(data), at) < len(data):
            raise RequestError(400, f"the object of region {placement.region[:100]!r} is smaller than it was")
        return memoryview(data).toreadonly()

    def write(self, placement: Placement, data: Any) -> None:
        """Put bytes there. Raises RequestError where there is no room for them, and never makes an object larger."""
        descriptor, at = self._within(placement)
        if len(data) > placement.byte_size:
            raise RequestError(
                400, f"an output has {len(data)} bytes; its shared_memory_byte_size is {placement.byte_size}"
            )
        if os.fstat(descriptor).st_size < at + len(data):
            raise RequestError(400, f"the object of region {placement.region[:100]!r} is smaller than it was")
        _whole(os.pwritev, descriptor, memoryview(data), at)

    # For the process that decodes large JSON --------------------------------------------------------------------------
    def to_json(self) -> list[Any]:
        """For another process."""
        return [self.allowed, self.status() if self.allowed else []]

    @classmethod
    def from_json(cls, data: list[Any]) -> Regions:
        """What `to_json` wrote, for one request; it is closed by `forget`."""
        found = cls(data[0])
        for row in data[1]:
            found.register(row["name"], row["key"], row["offset"], row["byte_size"])
        return found


def _sizes(*given: Any) -> bool:
    return all(type(n) is int and 0 <= n < 1 << 48 for n in given)


def _opened(key: str, size: int) -> int:
    try:
        descriptor = os.open(f"{FOLDER}/{key.lstrip('/')}", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise RequestError(400, f"shared memory {key[:100]!r} can't be opened: {error.strerror}") from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_size < size:
        os.close(descriptor)
        raise RequestError(400, f"shared memory {key[:100]!r} has {found.st_size} bytes; the region ends at {size}")
    return descriptor


def _whole(call: Any, descriptor: int, data: memoryview, at: int) -> int:
    """How many bytes were read or written, in as many calls as that takes."""
    done = 0
    while done < len(data):
        count = call(descriptor, [data[done:]], at + done)
        if not count:
            break
        done += count
    return done
