"""Certificates: who signs them, whom they name, how long they last."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import NameOID

from plane.identity.certificates import Authority, Validity, write_service_account_keys

PAST = Validity(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC))


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_client_certificate_names_user_and_groups(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    pair = authority.for_client("eve", user="eve", groups=["dev", "ops"], validity=PAST)

    subject = read(pair.certificate).subject
    names = [name.value for name in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [name.value for name in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    assert names == ["eve"]
    assert groups == ["dev", "ops"]


def test_a_certificate_lasts_as_long_as_requested(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    certificate = read(
        authority.for_client("eve", user="eve", groups=[], validity=PAST).certificate
    )

    assert certificate.not_valid_before_utc == PAST.not_before
    assert certificate.not_valid_after_utc == PAST.not_after


def test_certificates_are_signed_by_the_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    certificate = read(authority.for_server("web", names=["127.0.0.1"]).certificate)

    certificate.verify_directly_issued_by(read(authority.ca))


def test_a_server_certificate_names_addresses_and_hosts(tmp_path: Path) -> None:
    authority = Authority(tmp_path)

    pair = authority.for_server("web", names=["127.0.0.1", "localhost"])

    names = read(pair.certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert list(map(str, names.value.get_values_for_type(x509.IPAddress))) == ["127.0.0.1"]
    assert names.value.get_values_for_type(x509.DNSName) == ["localhost"]


def test_a_pair_can_be_served_and_its_key_is_private(tmp_path: Path) -> None:
    pair = Authority(tmp_path).for_server("web", names=["localhost"])

    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*pair)

    assert pair.key.stat().st_mode & 0o777 == 0o600


def test_the_authoritys_key_is_not_written(tmp_path: Path) -> None:
    Authority(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["ca.crt"]


def test_service_account_keys_are_a_pair_of_files(tmp_path: Path) -> None:
    public, private = write_service_account_keys(tmp_path)

    assert public.read_text().startswith("-----BEGIN PUBLIC KEY-----")
    assert private.stat().st_mode & 0o777 == 0o600
