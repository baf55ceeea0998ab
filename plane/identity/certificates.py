"""Certificates and keys of one control plane.

The authority's own key never leaves this process. Keys on disk lie in the state directory, which
no other user can enter.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=365)
# A new certificate must be valid now, also for a clock that is a little slow.
HEAD_START = timedelta(hours=1)
RSA_BITS = 2048


class KeyPair(NamedTuple):
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Validity:
    """From when until when a certificate is good."""

    not_before: datetime
    not_after: datetime

    @classmethod
    def from_now(cls) -> Validity:
        now = datetime.now(UTC)
        return cls(now - HEAD_START, now + LIFETIME)


class Authority:
    """Signs certificates; the API server and its clients trust them with `ca.crt`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ca = directory / "ca.crt"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("plane-ca", ())
        self.ca.write_bytes(self._self_signed().public_bytes(serialization.Encoding.PEM))

    def for_client(
        self, file_name: str, *, user: str, groups: Iterable[str], validity: Validity
    ) -> KeyPair:
        """A certificate that says who its bearer is."""
        builder = x509.CertificateBuilder().subject_name(_subject(user, groups))
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._issue(file_name, builder.add_extension(usage, critical=False), validity)

    def for_server(self, file_name: str, *, names: Iterable[str]) -> KeyPair:
        """A certificate for who answers at these names and addresses."""
        builder = x509.CertificateBuilder().subject_name(_subject(file_name, ()))
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False
        )
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        builder = builder.add_extension(usage, critical=False)
        return self._issue(file_name, builder, Validity.from_now())

    def _issue(
        self, file_name: str, builder: x509.CertificateBuilder, validity: Validity
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            builder.issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(validity.not_before)
            .not_valid_after(validity.not_after)
            .sign(self._key, hashes.SHA256())
        )
        pair = KeyPair(self.directory / f"{file_name}.crt", self.directory / f"{file_name}.key")
        pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(pair.key, key)
        return pair

    def _self_signed(self) -> x509.Certificate:
        validity = Validity.from_now()
        return (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            # Certificates that expired long ago are signed too; their signer must be older.
            .not_valid_before(validity.not_before - LIFETIME)
            .not_valid_after(validity.not_after)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_signing_only(), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )


def write_service_account_keys(directory: Path) -> KeyPair:
    """The pair that signs service account tokens: public half first, then the private one."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    pair = KeyPair(directory / "service-account.pub", directory / "service-account.key")
    _write_key(pair.key, key)
    pair.certificate.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return pair


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    path.touch(mode=0o600)
    path.write_bytes(text)


def _subject(user: str, groups: Iterable[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _signing_only() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
