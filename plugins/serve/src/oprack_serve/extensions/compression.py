"""Bodies that are compressed by gzip or deflate, with a bound on what comes out of them."""

from __future__ import annotations

import zlib

from oprack_serve.errors import RequestError

WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
LEAST = 1 << 10
"""Bytes of an answer that are worth it."""
LEVEL = 1


def decompressed(data: bytes | bytearray | memoryview, encoding: str, most: int) -> bytes:
    """What was compressed.

    Args:
        data: The body.
        encoding: Of its header Content-Encoding.
        most: Bytes that it may have.

    Returns:
        The bytes.

    Raises:
        RequestError: With 415 for another encoding, 413 for more bytes than `most`, 400 for what is damaged.
    """
    window = WINDOWS.get(encoding.strip().lower())
    if window is None:
        raise RequestError(415, f"Content-Encoding {encoding[:40]!r}; expected gzip, deflate or identity")
    machine = zlib.decompressobj(window)
    try:
        found = machine.decompress(data, most + 1)
    except zlib.error as error:
        raise RequestError(400, f"the body is no {encoding[:40]}: {error}") from None
    if len(found) > most:
        raise RequestError(
            413, f"the body has more than {most} bytes when it is decompressed; at most {most} are taken"
        )
    if not machine.eof or machine.unused_data:
        raise RequestError(400, f"the body is no {encoding[:40]}: it is cut off, or something follows")
    return found


def chosen(accepted: str | None) -> str:
    """The encoding of an answer by the header Accept-Encoding, "" for none."""
    if not accepted:
        return ""
    for each in accepted.split(","):
        name, _, quality = each.strip().lower().partition(";")
        if name.strip() in WINDOWS and quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            return name.strip()
    return ""


def compressed(pieces: list[bytes], encoding: str) -> bytes:
    """The pieces as one compressed body."""
    machine = zlib.compressobj(LEVEL, zlib.DEFLATED, WINDOWS[encoding])
    return b"".join([*map(machine.compress, pieces), machine.flush()])
