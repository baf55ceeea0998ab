"""TLS as kubectl does it, with every key and certificate in memory.

What Go accepts and OpenSSL by default does not, is accepted: an authority that is itself signed by
another. What Go refuses is refused: a server whose name stands only in its common name.
"""

from __future__ import annotations

import binascii
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from tidegate.errors import ConfigError
from tidegate.external.process import hold
from tidegate.kube.access.context import ClientCertificate, KubeTarget
from tidegate.model.patterns import late

CERTIFICATE = late(rb"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+?)-----END CERTIFICATE-----")
SEQUENCE, UTC_TIME, GENERALIZED_TIME, VERSION = 0x30, 0x17, 0x18, 0xA0
LONG_FORM = 0x80
VALIDITY = 3
"""Behind the version come serial number, algorithm and issuer; then the dates."""


def make_context(target: KubeTarget, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """Whom we trust and what we show. The certificate may be a plugin's, not the target's own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if target.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif target.ca is None:
        context.load_default_certs()
    else:
        _trust(context, target, target.ca)
    if certificate is not None:
        _show(context, certificate, target.user)
    return context


def expired(
    certificate: ClientCertificate, *, user: str, now: datetime | None = None
) -> ConfigError | None:
    """What to say when a server refuses us and the certificate is too old; nothing if it is not."""
    end = expiry_of(certificate.certificate)
    if end is None or end > (now or datetime.now(UTC)):
        return None
    problem = f"the client certificate of user `{user}` expired on {end:%Y-%m-%d at %H:%M} UTC"
    hint = "get a new kubeconfig, or renew the certificate"
    return ConfigError("config.certificate.expired", problem, where=certificate.place, hint=hint)


def expiry_of(pem: bytes) -> datetime | None:
    """When the first certificate of a PEM text ends. Python's `ssl` does not tell before use."""
    try:
        return _read_expiry(_certificates(pem)[0])
    except (IndexError, ValueError):
        return None


def _trust(context: ssl.SSLContext, target: KubeTarget, pem: bytes) -> None:
    try:
        authorities = b"".join(_certificates(pem))
        context.load_verify_locations(cadata=authorities)
    except (ValueError, ssl.SSLError) as error:
        problem = "the certificate authority holds no certificate that can be read"
        hint = "it must be PEM, and start with `-----BEGIN CERTIFICATE-----`"
        raise ConfigError("config.ca", problem, where=target.ca_place, hint=hint) from error


def _show(context: ssl.SSLContext, certificate: ClientCertificate, user: str) -> None:
    key = certificate.key.reveal().encode("latin-1")
    if b"ENCRYPTED" in key:
        raise _unusable(certificate, user, "has a passphrase on its key", "remove the passphrase")
    try:
        with _named(certificate.certificate + b"\n" + key) as path:
            context.load_cert_chain(path, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            why, hint = "does not belong to its key", "take both from the same source"
        else:
            why, hint = "or its key cannot be read", "both must be PEM"
        raise _unusable(certificate, user, why, hint) from error


def _unusable(certificate: ClientCertificate, user: str, why: str, hint: str) -> ConfigError:
    problem = f"the client certificate of user `{user}` {why}"
    return ConfigError("config.certificate", problem, where=certificate.place, hint=hint)


@contextmanager
def _named(content: bytes) -> Iterator[str]:
    """A path to this content, for as long as it takes OpenSSL to read it."""
    if sys.platform == "linux":
        with hold(content) as file:
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name


def _certificates(pem: bytes) -> list[bytes]:
    """All certificates in a PEM text, as DER. What stands around them is skipped."""
    blocks = [binascii.a2b_base64(found) for found in CERTIFICATE.findall(pem)]
    if not blocks:
        raise ValueError
    return blocks


def _read_expiry(der: bytes) -> datetime:
    """Walk to the second of the two dates; nothing else is looked at."""
    inner = _enter(der, 0)
    at = _enter(der, inner)
    if der[at] == VERSION:
        at = _skip(der, at)
    for _ in range(VALIDITY):
        at = _skip(der, at)
    not_after = _skip(der, _enter(der, at))
    tag, start, end = _element(der, not_after)
    text = der[start:end].decode("ascii")
    if tag == UTC_TIME:
        century = "19" if text >= "50" else "20"
    elif tag == GENERALIZED_TIME:
        century = ""
    else:
        raise ValueError
    return datetime.strptime(century + text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _enter(der: bytes, at: int) -> int:
    tag, start, _ = _element(der, at)
    if tag != SEQUENCE:
        raise ValueError
    return start


def _skip(der: bytes, at: int) -> int:
    return _element(der, at)[2]


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """The tag of an element, where its content starts, and where it ends."""
    length, start = der[at + 1], at + 2
    if length >= LONG_FORM:
        size = length - LONG_FORM
        length, start = int.from_bytes(der[start : start + size], "big"), start + size
    if start + length > len(der):
        raise ValueError
    return der[at], start, start + length
