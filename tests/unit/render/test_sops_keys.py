"""Where keys come from, and which entries of a Secret count."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.recorded_wording import RecordedWording
from tests.support.sops_program import FOLDER, PROGRAM, AgeKey, encrypt
from tidegate.documents import read_documents
from tidegate.errors import Location, RenderError
from tidegate.model.k8s.secret import SecretValue
from tidegate.render.sops import Keys, MacStatus, decrypt, decrypt_file

PGP_KEY = (FOLDER / "pgp-key.asc").read_bytes()
PGP_SECRET = (FOLDER / "pgp-secret.yaml").read_bytes()


def key_file(folder: Path, *keys: AgeKey) -> Path:
    path = folder / "keys.txt"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"# public key: {key.recipient}\n{key.identity}\n\n" for key in keys]
    path.write_text("".join(lines))
    return path


def test_keys_are_read_from_the_environment_a_file_and_the_default_file(tmp_path: Path) -> None:
    first, second, third, fourth = (AgeKey.generate() for _ in range(4))
    key_file(tmp_path / ".config" / "sops" / "age", fourth)
    environ = {
        "SOPS_AGE_KEY": f"{first.identity} {second.identity}",
        "SOPS_AGE_KEY_FILE": str(key_file(tmp_path, third)),
        "HOME": str(tmp_path),
    }

    keys = Keys.from_environment(environ)

    assert [secret.reveal() for secret in keys.identities] == [
        first.identity,
        second.identity,
        third.identity,
        fourth.identity,
    ]


def test_only_variables_of_sops_are_passed_on() -> None:
    environ = {"AWS_PROFILE": "x", "VAULT_TOKEN": "y", "GITHUB_TOKEN": "z", "PATH": "/bin"}

    keys = Keys.from_environment(environ)

    assert keys.environment == {"AWS_PROFILE": "x", "VAULT_TOKEN": "y"}


def test_a_missing_key_file_is_reported(tmp_path: Path, wording: RecordedWording) -> None:
    with pytest.raises(RenderError) as caught:
        Keys.from_environment({"SOPS_AGE_KEY_FILE": str(tmp_path / "none.txt")})

    assert caught.value.code == "render.sops.identity"
    wording(caught.value.problem)


def test_a_recipient_is_no_identity(wording: RecordedWording) -> None:
    recipient = AgeKey.generate().recipient

    with pytest.raises(RenderError) as caught:
        Keys.from_environment({"SOPS_AGE_KEY": recipient})

    assert caught.value.code == "render.sops.identity"
    assert recipient not in str(caught.value)
    wording(caught.value.problem)


async def test_a_damaged_identity_is_reported(tmp_path: Path, wording: RecordedWording) -> None:
    key = AgeKey.generate()
    encrypted = encrypt(tmp_path / "a.yaml", "a: b\n", key)

    with pytest.raises(RenderError) as caught:
        await decrypt_file(
            encrypted,
            Keys.from_environment({"SOPS_AGE_KEY": key.identity[:-2] + "QQ"}),
            location=Location("a.yaml"),
        )

    assert caught.value.code == "render.sops.identity"
    assert key.identity[:-2] not in str(caught.value)
    wording(caught.value.problem)


async def test_any_of_many_keys_decrypts_a_file_for_many(tmp_path: Path) -> None:
    ours, theirs, other = (AgeKey.generate() for _ in range(3))
    both = AgeKey("", f"{theirs.recipient},{ours.recipient}")
    encrypted = encrypt(tmp_path / "a.yaml", "a: b\n", both)
    entries = {"identity.agekey": f"# two\n{other.identity}\n{ours.identity}\n".encode()}

    file = await decrypt_file(encrypted, Keys.from_secret(entries), location=Location("a.yaml"))

    assert file.content == b"a: b\n"


def test_the_entries_of_a_secret_are_read_as_flux_names_them() -> None:
    key = AgeKey.generate()
    aws = b"aws_access_key_id: id\naws_secret_access_key: key\nother: x\n"
    entries = {
        "identity.agekey": key.identity.encode(),
        "sops.asc": PGP_KEY,
        "sops.vault-token": b" token\n",
        "sops.aws-kms": aws,
        "sops.azure-kv": b"tenantId: t\nclientId: c\nclientSecret: s\n",
        "sops.gcp-kms": b'{"type": "service_account"}',
        "age.key": b"x",
        "other.vault-token": b"x",
    }

    keys = Keys.from_secret(entries)

    assert keys.identities == (SecretValue(key.identity),)
    assert len(keys.pgp) == 1
    assert keys.environment == {
        "VAULT_TOKEN": "token",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "key",
        "AZURE_TENANT_ID": "t",
        "AZURE_CLIENT_ID": "c",
        "AZURE_CLIENT_SECRET": "s",
        "GOOGLE_CREDENTIALS": '{"type": "service_account"}',
    }
    assert keys.ignored_entries == ("age.key", "other.vault-token")


def test_credentials_must_be_a_mapping() -> None:
    with pytest.raises(RenderError) as caught:
        Keys.from_secret({"sops.aws-kms": b"- x"}, location=Location("Secret flux-system/sops"))

    assert caught.value.code == "render.sops.identity"
    assert str(caught.value.location) == "Secret flux-system/sops (sops.aws-kms)"


async def test_a_key_under_a_name_that_flux_ignores_is_named_in_the_hint(tmp_path: Path) -> None:
    key = AgeKey.generate()
    encrypted = encrypt(tmp_path / "a.yaml", "a: b\n", key)
    keys = Keys.from_secret({"age.key": key.identity.encode()})

    with pytest.raises(RenderError) as caught:
        await decrypt_file(encrypted, keys, location=Location("a.yaml"))

    assert "`age.key`" in caught.value.hint


def test_a_key_is_not_in_a_repr() -> None:
    key = AgeKey.generate()
    keys = Keys.from_secret({"a.agekey": key.identity.encode(), "sops.vault-token": b"hvs.token"})

    shown = repr(keys)

    assert key.identity not in shown
    assert "hvs.token" not in shown


async def test_a_pgp_key_is_used_by_the_program() -> None:
    keys = Keys.from_secret({"sops.asc": PGP_KEY}, program=PROGRAM)

    decrypted = await decrypt(read_documents(PGP_SECRET, "pgp.yaml"), keys)

    assert decrypted.documents[0].body["stringData"] == {"password": "hunter2", "port": 5432}
    assert decrypted.secret_fields == ((("stringData", "password"), ("stringData", "port")),)


async def test_the_program_checks_the_mac_too() -> None:
    keys = Keys.from_secret({"sops.asc": PGP_KEY}, program=PROGRAM)

    intact = await decrypt_file(PGP_SECRET, keys, location=Location("pgp.yaml"))
    edited = PGP_SECRET.replace(b"name: db", b"name: dc")
    broken = await decrypt_file(edited, keys, location=Location("pgp.yaml"))

    assert intact.mac_status is MacStatus.INTACT
    assert broken.mac_status is MacStatus.BROKEN
    assert broken.content == intact.content.replace(b"name: db", b"name: dc")


async def test_the_recipients_of_a_file_that_the_program_cannot_decrypt_are_named() -> None:
    with pytest.raises(RenderError, match="`pgp ") as caught:
        await decrypt_file(
            PGP_SECRET, Keys(program=PROGRAM, is_isolated=True), location=Location("pgp.yaml")
        )

    assert caught.value.code == "render.sops.key"


async def test_a_missing_program_is_reported() -> None:
    with pytest.raises(RenderError, match="`no-such-sops`") as caught:
        await decrypt_file(PGP_SECRET, Keys(program="no-such-sops"), location=Location("pgp.yaml"))

    assert caught.value.code == "render.sops.key"
    assert "`sops`" in caught.value.hint


async def test_output_of_the_program_about_a_value_is_not_repeated() -> None:
    keys = Keys.from_secret({"sops.asc": PGP_KEY}, program=PROGRAM)
    edited = PGP_SECRET.replace(
        b"    password: ENC", b"    canary: canary-value\n    password: ENC"
    )

    with pytest.raises(RenderError) as caught:
        await decrypt_file(edited, keys, location=Location("pgp.yaml"))

    assert caught.value.code == "render.sops.program"
    assert "canary-value" not in str(caught.value)
