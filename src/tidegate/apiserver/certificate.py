"""The certificate of a server on this machine: made when it starts, good for nobody else."""

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
HEAD_START = timedelta(hours=1)
"""A clock that is a little behind believes it, too."""
PEM = serialization.Encoding.PEM


def make_certificate(place: Path) -> tuple[bytes, ssl.SSLContext]:
    """A certificate that vouches for itself, and what a server needs of it.

    Its key is written to `place`, which must be a directory of nobody else's, and removed again.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed(key).public_bytes(PEM)
    files = place / "server.crt", place / "server.key"
    secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    files[1].touch(mode=0o600)
    try:
        files[0].write_bytes(certificate)
        files[1].write_bytes(secret)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
    finally:
        for one in files:
            one.unlink(missing_ok=True)
    return certificate, context


def _signed(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tidegate-sandbox")])
    now = datetime.now(UTC)
    names = [x509.IPAddress(ipaddress.ip_address(HOST)), x509.DNSName("localhost")]
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - HEAD_START)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
