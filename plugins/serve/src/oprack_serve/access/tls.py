"""TLS: a certificate and its key, checked before anything is started."""

from __future__ import annotations

import ssl
from pathlib import Path

from oprack.errors import InvalidArgumentError


def check_tls(certificate: Path | None, key: Path | None) -> bool:
    """Whether TLS is asked for. Raises InvalidArgumentError for files that are no certificate with its key."""
    if certificate is None and key is None:
        return False
    if certificate is None or key is None:
        raise InvalidArgumentError("TLS needs both --tls-cert FILE and --tls-key FILE, in PEM")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, _no_password)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise InvalidArgumentError(
            f"--tls-cert {str(certificate)!r} and --tls-key {str(key)!r}: {reason}; expected a certificate, with those "
            "that signed it behind it, and its private key, without a password, in PEM"
        ) from None
    return True


def _no_password() -> str:
    raise ValueError("the key has a password")
