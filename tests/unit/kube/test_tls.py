"""TLS contexts: real handshakes with certificates that never touch a disk."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)
from hypothesis import given
from hypothesis import strategies as some

from tests.support.certificates import END, CertificatePair, issue
from tests.support.echo_server import echo_server
from tests.support.recorded_wording import RecordedWording
from tidegate.errors import ConfigError, Location
from tidegate.kube.access.context import Anonymous, ClientCertificate, KubeTarget
from tidegate.kube.tls import certificate_expiry, expiry_error, make_context
from tidegate.model.k8s.secret import SecretValue

HERE = Location("config", 7)
AUTHORITY = issue("authority", is_authority=True)
SERVER = issue("server", AUTHORITY)
CLIENT = issue("jane", AUTHORITY)


def target(ca: bytes | None = AUTHORITY.certificate, *, insecure: bool = False) -> KubeTarget:
    return KubeTarget(
        name="here",
        server="https://localhost",
        namespace="default",
        user="jane",
        login=Anonymous(),
        ca=ca,
        ca_location=HERE,
        insecure=insecure,
        location=HERE,
    )


def shown(certificate: bytes, key: bytes) -> ClientCertificate:
    return ClientCertificate(certificate, SecretValue(key.decode("latin-1")), HERE)


@contextmanager
def serving(pair: CertificatePair, folder: Path) -> Iterator[int]:
    (folder / "server.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem")
    context.load_verify_locations(cadata=AUTHORITY.certificate.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    with echo_server(context) as port:
        yield port


def ask(port: int, context: ssl.SSLContext) -> str | None:
    """The name of the certificate that the server saw."""
    connection = http.client.HTTPSConnection("localhost", port, context=context)
    try:
        connection.request("GET", "/")
        echoed: dict[str, str | None] = msgspec.json.decode(connection.getresponse().read())
    finally:
        connection.close()
    return echoed["certificate"]


def refused(make: KubeTarget, certificate: ClientCertificate | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        make_context(make, certificate)
    return caught.value


def test_a_server_is_trusted_by_its_authority(tmp_path: Path) -> None:
    with serving(SERVER, tmp_path) as port:
        assert ask(port, make_context(target(), None)) is None


def test_a_client_certificate_is_shown_and_no_file_is_left(tmp_path: Path) -> None:
    with serving(SERVER, tmp_path) as port:
        context = make_context(target(), shown(CLIENT.certificate, CLIENT.key))

        assert "jane" in (ask(port, context) or "")
    assert [path.name for path in tmp_path.iterdir()] == ["server.pem"]


def test_a_server_of_another_authority_is_not_trusted(tmp_path: Path) -> None:
    other = issue("other", is_authority=True)

    with serving(SERVER, tmp_path) as port, pytest.raises(ssl.SSLCertVerificationError):
        ask(port, make_context(target(other.certificate), None))


def test_without_a_certificate_authority_those_of_the_system_are_used(tmp_path: Path) -> None:
    with serving(SERVER, tmp_path) as port, pytest.raises(ssl.SSLCertVerificationError):
        ask(port, make_context(target(ca=None), None))


def test_insecure_trusts_anyone(tmp_path: Path) -> None:
    stranger = issue("stranger", names=())

    with serving(stranger, tmp_path) as port:
        assert ask(port, make_context(target(ca=None, insecure=True), None)) is None


def test_an_authority_that_another_one_signed_is_enough(tmp_path: Path) -> None:
    middle = issue("middle", AUTHORITY, is_authority=True)

    with serving(issue("server", middle), tmp_path) as port:
        assert ask(port, make_context(target(middle.certificate), None)) is None


def test_a_server_that_signed_itself_can_be_trusted_by_name(tmp_path: Path) -> None:
    alone = issue("alone")

    with serving(alone, tmp_path) as port:
        assert ask(port, make_context(target(alone.certificate), None)) is None


def test_a_common_name_is_no_name(tmp_path: Path) -> None:
    nameless = issue("localhost", AUTHORITY, names=())

    with serving(nameless, tmp_path) as port, pytest.raises(ssl.SSLCertVerificationError):
        ask(port, make_context(target(), None))


def test_a_certificate_authority_is_found_between_comments(tmp_path: Path) -> None:
    other = issue("other", is_authority=True)
    bundle = b"# ours\n" + other.certificate + b"\nsubject=x\n" + AUTHORITY.certificate + b"end"

    with serving(SERVER, tmp_path) as port:
        assert ask(port, make_context(target(bundle), None)) is None


def test_old_versions_of_tls_are_rejected() -> None:
    assert make_context(target(), None).minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    "ca",
    [
        b"",
        b"no certificate",
        b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        CLIENT.key,
        AUTHORITY.certificate[:200],
    ],
)
def test_an_authority_that_cannot_be_read_is_reported(ca: bytes) -> None:
    error = refused(target(ca))

    assert (error.code, error.location) == ("config.ca", HERE)


@pytest.mark.parametrize(
    ("certificate", "key"),
    [
        (CLIENT.certificate, SERVER.key),
        (CLIENT.certificate, b"no key"),
        (b"no certificate", CLIENT.key),
        (CLIENT.certificate[:200], CLIENT.key),
        (b"", CLIENT.key),
        (b"\xff\x00", b"\xff\x00"),
    ],
    ids=["other key", "no key", "no certificate", "half", "empty", "binary"],
)
def test_an_invalid_client_certificate_is_reported(
    certificate: bytes, key: bytes, wording: RecordedWording
) -> None:
    error = refused(target(), shown(certificate, key))

    assert (error.code, error.location) == ("config.certificate", HERE)
    assert "`jane`" in error.problem
    wording(error.problem)


def test_a_key_with_a_passphrase_is_refused_without_a_prompt(wording: RecordedWording) -> None:
    locked = CLIENT.private.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"phrase")
    )

    error = refused(target(), shown(CLIENT.certificate, locked))

    assert error.code == "config.certificate"
    wording(error.problem)


@pytest.mark.parametrize(
    "end",
    [
        datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2050, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_the_end_of_a_certificate_is_read(end: datetime) -> None:
    assert certificate_expiry(issue("old", AUTHORITY, expires=end).certificate) == end


def test_the_first_certificate_of_a_chain_counts() -> None:
    end = datetime(2030, 1, 1, tzinfo=UTC)

    assert certificate_expiry(issue("x", expires=end).certificate + AUTHORITY.certificate) == end


def test_an_expired_client_certificate_is_reported_with_its_date(wording: RecordedWording) -> None:
    old = issue("jane", AUTHORITY, expires=datetime(2024, 5, 6, 7, 8, tzinfo=UTC))

    error = expiry_error(shown(old.certificate, old.key), user="jane")

    assert error is not None
    assert (error.code, error.location) == ("config.certificate.expired", HERE)
    wording(error.problem)


def test_a_certificate_is_good_until_its_end() -> None:
    pair = shown(CLIENT.certificate, CLIENT.key)

    assert expiry_error(pair, user="jane", now=datetime(2098, 12, 31, tzinfo=UTC)) is None
    assert expiry_error(pair, user="jane", now=END) is not None


def test_an_unreadable_certificate_is_not_reported_as_expired() -> None:
    assert expiry_error(shown(b"junk", b"junk"), user="jane") is None


@given(some.binary(max_size=60), some.integers(0, 400), some.integers(0, 60))
def test_reading_the_end_of_a_damaged_certificate_never_breaks(
    noise: bytes, at: int, dropped: int
) -> None:
    der = ssl.PEM_cert_to_DER_cert(CLIENT.certificate.decode())
    damaged = der[:at] + noise + der[at + dropped :]

    end = certificate_expiry(ssl.DER_cert_to_PEM_cert(damaged).encode())

    assert end is None or end.tzinfo is UTC
