"""The self-signed certificate of a local server, created when it starts."""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tidegate.apiserver.server import HOST

LIFETIME = timedelta(days=365)
CLOCK_SKEW = timedelta(hours=1)
"""How far the validity starts in the past, for clients with a slow clock."""
PEM = serialization.Encoding.PEM


def make_certificate(directory: Path) -> tuple[bytes, ssl.SSLContext]:
    """Return a self-signed certificate and the TLS context of a server with it.

    The key is written to `directory`, which must be private, and is deleted again.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _sign(key).public_bytes(PEM)
    files = directory / "server.crt", directory / "server.key"
    private_key = key.private_bytes(
        PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    files[1].touch(mode=0o600)
    try:
        files[0].write_bytes(certificate)
        files[1].write_bytes(private_key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
    finally:
        for path in files:
            path.unlink(missing_ok=True)
    return certificate, context


def _sign(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tidegate-sandbox")])
    now = datetime.now(UTC)
    names = [x509.IPAddress(ipaddress.ip_address(HOST)), x509.DNSName("localhost")]
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
