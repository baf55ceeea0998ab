"""Objects are decrypted after the build, and each keeps its location."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.support.sops_program import AgeKey, encrypt
from tidegate.documents import Document, read_documents
from tidegate.errors import RenderError
from tidegate.render.sops import Keys, decrypt, find_encrypted, replace_with_placeholders
from tidegate.render.sops.objects import PLACEHOLDER

SECRET = """apiVersion: v1
kind: Secret
metadata:
  name: db
  labels: {app: shop}
stringData:
  password: hunter2
  port: 5432
  share: 0.25
  ready: true
  since: 2020-01-01
  list: [a, {b: c}]
  empty: ""
  nothing: null
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 3
"""
PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {a: b}\n"


@pytest.fixture(scope="module")
def key() -> AgeKey:
    return AgeKey.generate()


@pytest.fixture(scope="module")
def encrypted(key: AgeKey, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("sops")
    return encrypt(folder / "a.yaml", SECRET, key, "--encrypted-regex", "^(stringData|spec)$")


def secret_of(entries: dict[str, bytes], **annotations: str) -> Document:
    body = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: files\n  annotations:\n"
    body += "".join(f"    {name}: {value}\n" for name, value in (annotations or {"a": "b"}).items())
    body += "data:\n" + "".join(
        f"  {name}: {base64.b64encode(value).decode()}\n" for name, value in entries.items()
    )
    return read_documents(body, "files.yaml")[0]


async def test_objects_of_any_kind_are_decrypted_and_keep_their_locations(
    key: AgeKey, encrypted: bytes
) -> None:
    documents = (*read_documents(encrypted, "a.yaml"), *read_documents(PLAIN, "plain.yaml"))

    decrypted = await decrypt(documents, key.keys)

    secret, deployment, plain = decrypted.documents
    assert secret.body["stringData"] == {
        "password": "hunter2",
        "port": 5432,
        "share": 0.25,
        "ready": True,
        "since": "2020-01-01T00:00:00Z",
        "list": ["a", {"b": "c"}],
        "empty": "",
        "nothing": None,
    }
    assert deployment.body["spec"] == {"replicas": 3}
    assert plain is documents[2]
    assert [document.location for document in decrypted.documents] == [
        d.location for d in documents
    ]
    assert not any("sops" in document.body for document in decrypted.documents)


async def test_the_fields_that_were_encrypted_are_named(key: AgeKey, encrypted: bytes) -> None:
    documents = (*read_documents(encrypted, "a.yaml"), *read_documents(PLAIN, "plain.yaml"))

    decrypted = await decrypt(documents, key.keys)

    assert decrypted.secret_fields[0][:2] == (("stringData", "password"), ("stringData", "port"))
    assert ("stringData", "list", 1, "b") in decrypted.secret_fields[0]
    assert decrypted.secret_fields[1:] == ((("spec", "replicas"),), ())


async def test_an_object_may_be_changed_by_a_build_before_it_is_decrypted(
    key: AgeKey, encrypted: bytes
) -> None:
    document = read_documents(encrypted.replace(b"name: db", b"name: prod-db"), "a.yaml")[0]

    decrypted = await decrypt([document], key.keys)

    assert decrypted.documents[0].body["metadata"] == {
        "name": "prod-db",
        "labels": {"app": "shop"},
    }


async def test_a_patched_plain_value_is_refused_with_its_field(
    key: AgeKey, encrypted: bytes
) -> None:
    document = read_documents(encrypted, "a.yaml")[1]
    patched = Document({**document.body, "spec": {"replicas": 5}}, document.location)

    with pytest.raises(RenderError) as caught:
        await decrypt([patched], key.keys)

    assert caught.value.code == "render.sops.plain"
    assert caught.value.location is not None
    assert caught.value.location.field == "spec.replicas"


async def test_encrypted_files_inside_a_secret_are_decrypted(key: AgeKey, tmp_path: Path) -> None:
    files = {
        "values.yaml": encrypt(tmp_path / "values.yaml", "a: 1\n", key),
        "x.json": encrypt(tmp_path / "x.json", '{"a": "b"}', key),
        "x.env": encrypt(tmp_path / "x.env", "A=b\n", key),
        "x.ini": encrypt(tmp_path / "x.ini", "[s]\na = b\n", key),
        "tls.key": encrypt(tmp_path / "tls.key", "-----BEGIN", key),
        "plain": b"plain",
    }

    decrypted = await decrypt([secret_of(files)], key.keys)

    result = decrypted.documents[0].body["data"]
    assert isinstance(result, dict)
    assert {name: base64.b64decode(str(value)) for name, value in result.items()} == {
        "values.yaml": b"a: 1\n",
        "x.json": b'{\n\t"a": "b"\n}\n',
        "x.env": b"A=b\n",
        "x.ini": b"[s]\na = b\n",
        "tls.key": b"-----BEGIN",
        "plain": b"plain",
    }
    assert ("data", "plain") not in decrypted.secret_fields[0]
    assert len(decrypted.secret_fields[0]) == 5


async def test_an_object_can_opt_out(key: AgeKey, tmp_path: Path) -> None:
    file = encrypt(tmp_path / "x.env", "A=b\n", key)
    document = secret_of({"x.env": file}, **{"kustomize.toolkit.fluxcd.io/decrypt": "Disabled"})

    decrypted = await decrypt([document], key.keys)

    assert decrypted.documents == (document,)
    assert find_encrypted([document]) == ()


def test_encrypted_objects_are_found(encrypted: bytes) -> None:
    secret, deployment = read_documents(encrypted, "a.yaml")
    (plain,) = read_documents(PLAIN, "plain.yaml")
    (broken,) = read_documents("kind: Secret\ndata: {a: '!', b: 5}\n", "broken.yaml")

    result = find_encrypted([secret, plain, deployment, broken])

    assert result == (secret, deployment)


async def test_without_a_key_nothing_is_decrypted(encrypted: bytes) -> None:
    with pytest.raises(RenderError) as caught:
        await decrypt(read_documents(encrypted, "a.yaml"), Keys())

    assert caught.value.code == "render.sops.key"


async def test_offline_placeholders_replace_values_and_errors_are_reported(
    key: AgeKey, encrypted: bytes
) -> None:
    decrypted = await decrypt(read_documents(encrypted, "a.yaml"), Keys(), offline=True)

    assert decrypted.documents[0].body["stringData"] == {
        "password": PLACEHOLDER,
        "port": 0,
        "share": 0.5,
        "ready": False,
        "since": "1970-01-01T00:00:00Z",
        "list": [PLACEHOLDER, {"b": PLACEHOLDER}],
        "empty": "",
        "nothing": None,
    }
    assert [error.code for error in decrypted.errors] == ["render.sops.key"] * 2
    assert key.recipient in str(decrypted.errors[0])


@pytest.mark.parametrize("removed", ["block", "MAC"])
async def test_encrypted_values_without_a_sops_block_are_not_plain_values(
    key: AgeKey, encrypted: bytes, removed: str
) -> None:
    document = read_documents(encrypted, "a.yaml")[0]
    block = document.body.pop("sops")
    if removed == "MAC" and isinstance(block, dict):
        document.body["sops"] = {name: part for name, part in block.items() if name != "mac"}

    decrypted = await decrypt([document], key.keys, offline=True)

    (lost,) = decrypted.errors
    assert lost.code == "render.sops.metadata"
    assert "(stringData." in str(lost)
    assert "ENC[" not in str(decrypted.documents[0].body)
    with pytest.raises(RenderError):
        await decrypt([document], key.keys)


async def test_offline_does_not_excuse_a_damaged_value(key: AgeKey, encrypted: bytes) -> None:
    document = read_documents(encrypted.replace(b"password:", b"pass:"), "a.yaml")[0]

    with pytest.raises(RenderError) as caught:
        await decrypt([document], key.keys, offline=True)

    assert caught.value.code == "render.sops.value"


def test_placeholders_in_data_are_base64(key: AgeKey, tmp_path: Path) -> None:
    plain = "kind: Secret\ndata:\n  a: aGVsbG8=\n"
    (document,) = read_documents(
        encrypt(tmp_path / "a.yaml", plain, key, "--encrypted-regex", "data"), "a"
    )
    files = secret_of({"x.env": encrypt(tmp_path / "x.env", "A=b\n", key), "plain": b"plain"})

    whole, inner = (
        replace_with_placeholders(document).body["data"],
        replace_with_placeholders(files).body["data"],
    )

    assert isinstance(whole, dict)
    assert isinstance(inner, dict)
    assert base64.b64decode(str(whole["a"])).decode() == PLACEHOLDER
    assert base64.b64decode(str(inner["x.env"])).decode() == PLACEHOLDER
    assert base64.b64decode(str(inner["plain"])) == b"plain"


def test_a_plain_document_has_no_placeholders() -> None:
    (document,) = read_documents(PLAIN, "plain.yaml")

    assert replace_with_placeholders(document) is document
