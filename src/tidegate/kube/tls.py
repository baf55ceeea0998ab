"""TLS with kubectl's rules, with all keys and certificates in memory.

Like Go and unlike OpenSSL by default, an intermediate certificate is accepted as the authority.
Like Go, a server whose name is only in the common name of its certificate is rejected.
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
from tidegate.external.process import open_temporary_file
from tidegate.kube.access.context import ClientCertificate, KubeTarget
from tidegate.model.text.lazy_regex import lazy_regex

PEM_CERTIFICATE = lazy_regex(
    rb"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+?)-----END CERTIFICATE-----"
)
SEQUENCE, UTC_TIME, GENERALIZED_TIME, VERSION = 0x30, 0x17, 0x18, 0xA0
LONG_FORM = 0x80
FIELDS_BEFORE_VALIDITY = 3
"""Serial number, algorithm and issuer follow the version; then the dates."""


def make_context(target: KubeTarget, certificate: ClientCertificate | None) -> ssl.SSLContext:
    """Return the TLS context for a target. An exec plugin may provide the client certificate.

    Like `TLSConfigFor` in `transport/transport.go` of k8s.io/client-go 0.36.4.
    """
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
        _load_authorities(context, target, target.ca)
    if certificate is not None:
        _load_client_certificate(context, certificate, target.user)
    return context


def expiry_error(
    certificate: ClientCertificate, *, user: str, now: datetime | None = None
) -> ConfigError | None:
    """Return the error for an expired client certificate. Returns None if it has not expired."""
    expiry = certificate_expiry(certificate.certificate)
    if expiry is None or expiry > (now or datetime.now(UTC)):
        return None
    problem = f"the client certificate of user `{user}` expired on {expiry:%Y-%m-%d at %H:%M} UTC"
    hint = "get a new kubeconfig, or renew the certificate"
    return ConfigError(
        "config.certificate.expired", problem, location=certificate.location, hint=hint
    )


def certificate_expiry(pem: bytes) -> datetime | None:
    """Return the expiry of the first certificate of a PEM text. Returns None if there is none.

    The `ssl` module does not report it before use.
    """
    try:
        return _read_expiry(_certificates(pem)[0])
    except (IndexError, ValueError):
        return None


def _load_authorities(context: ssl.SSLContext, target: KubeTarget, pem: bytes) -> None:
    try:
        authorities = b"".join(_certificates(pem))
        context.load_verify_locations(cadata=authorities)
    except (ValueError, ssl.SSLError) as error:
        problem = "the certificate authority contains no valid certificate"
        hint = "it must be PEM, and start with `-----BEGIN CERTIFICATE-----`"
        raise ConfigError("config.ca", problem, location=target.ca_location, hint=hint) from error


def _load_client_certificate(
    context: ssl.SSLContext, certificate: ClientCertificate, user: str
) -> None:
    key = certificate.key.reveal().encode("latin-1")
    if b"ENCRYPTED" in key:
        raise _certificate_error(
            certificate, user, "has a key with a passphrase", "remove the passphrase"
        )
    try:
        with _temporary_path(certificate.certificate + b"\n" + key) as path:
            context.load_cert_chain(path, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            reason, hint = "does not belong to its key", "take both from the same source"
        else:
            reason, hint = "or its key cannot be parsed", "both must be PEM"
        raise _certificate_error(certificate, user, reason, hint) from error


def _certificate_error(
    certificate: ClientCertificate, user: str, reason: str, hint: str
) -> ConfigError:
    problem = f"the client certificate of user `{user}` {reason}"
    return ConfigError("config.certificate", problem, location=certificate.location, hint=hint)


@contextmanager
def _temporary_path(content: bytes) -> Iterator[str]:
    """Yield a path to this content, so that OpenSSL can read it."""
    if sys.platform == "linux":
        with open_temporary_file(content) as file:
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name


def _certificates(pem: bytes) -> list[bytes]:
    """Return all certificates of a PEM text as DER. Text around them is skipped."""
    blocks = [binascii.a2b_base64(encoded) for encoded in PEM_CERTIFICATE.findall(pem)]
    if not blocks:
        raise ValueError
    return blocks


def _read_expiry(der: bytes) -> datetime:
    """Return the second of the two validity dates. Nothing else is parsed."""
    inner = _enter_sequence(der, 0)
    offset = _enter_sequence(der, inner)
    if der[offset] == VERSION:
        offset = _skip_element(der, offset)
    for _ in range(FIELDS_BEFORE_VALIDITY):
        offset = _skip_element(der, offset)
    not_after = _skip_element(der, _enter_sequence(der, offset))
    tag, start, end = _read_element(der, not_after)
    text = der[start:end].decode("ascii")
    if tag == UTC_TIME:
        century = "19" if text >= "50" else "20"
    elif tag == GENERALIZED_TIME:
        century = ""
    else:
        raise ValueError
    return datetime.strptime(century + text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _enter_sequence(der: bytes, offset: int) -> int:
    tag, start, _ = _read_element(der, offset)
    if tag != SEQUENCE:
        raise ValueError
    return start


def _skip_element(der: bytes, offset: int) -> int:
    return _read_element(der, offset)[2]


def _read_element(der: bytes, offset: int) -> tuple[int, int, int]:
    """Return the tag of a DER element, and where its content starts and ends."""
    length, start = der[offset + 1], offset + 2
    if length >= LONG_FORM:
        size = length - LONG_FORM
        length, start = int.from_bytes(der[start : start + size], "big"), start + size
    if start + length > len(der):
        raise ValueError
    return der[offset], start, start + length
