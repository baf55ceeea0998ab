"""Certificates for tests: an authority, and what it signs."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
END = datetime(2099, 1, 1, tzinfo=UTC)
NAMES = (x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1")))


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A certificate and its key, as objects and as PEM."""

    signed: x509.Certificate
    private: ec.EllipticCurvePrivateKey

    @property
    def certificate(self) -> bytes:
        return self.signed.public_bytes(Encoding.PEM)

    @property
    def key(self) -> bytes:
        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def issue(
    name: str,
    issuer: CertificatePair | None = None,
    *,
    is_authority: bool = False,
    names: tuple[x509.GeneralName, ...] = NAMES,
    expires: datetime = END,
) -> CertificatePair:
    """Sign a new certificate; without an issuer it signs itself."""
    private = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.signed.subject if issuer else subject)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(BEGIN, expires))
        .not_valid_after(expires)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if names and not is_authority:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(issuer.private if issuer else private, hashes.SHA256())
    return CertificatePair(signed, private)
